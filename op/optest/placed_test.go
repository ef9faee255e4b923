package optest_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/opcases"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The document lists the operators that take no gaps.
func TestDocumentOfGaps(t *testing.T) {
	text, err := os.ReadFile("../../docs/in-place.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "Kernels that need contiguous values:")
	if !ok {
		t.Fatal("docs/in-place.md: got no list of kernels that need contiguous values")
	}
	found := map[string]string{}
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			break
		}
		for _, name := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(cells[1], -1) {
			found[name[1]] = strings.TrimSpace(cells[2])
		}
	}
	delete(found, "operators")
	for name, why := range takesNoGaps {
		if found[name] != why {
			t.Errorf("docs/in-place.md: got %q for %s, want %q", found[name], name, why)
		}
		delete(found, name)
	}
	for name := range found {
		t.Errorf("docs/in-place.md: got %s in the list, want operators that take no gaps", name)
	}
}

// eachCase calls f with calls of an operator.
func eachCase(t *testing.T, def *op.Def, r *rand.Rand, f func(s *sized)) {
	t.Helper()
	for _, c := range opcases.All()[def.Name] {
		if c.Fails != "" {
			continue
		}
		for try := range tries(c) {
			of := c
			if try%2 == 1 {
				of = resized(c, r)
			}
			if s, err := newSized(def, of); err == nil {
				f(s)
			}
		}
	}
}

// bindLaid binds the call of l.
func (l *laid) bindLaid() (*compute.Task, error) {
	c := l.call()
	l.set(c)
	return compute.Bind(c)
}

// A result with gaps may lie in the bytes of an operand with the same strides
// where the alias rules say so of contiguous ones.
func TestStridedInPlace(t *testing.T) {
	total := 0
	for _, def := range op.Builtin().Defs() {
		if def.Regions > 0 || def.Bound != nil {
			continue
		}
		r := rand.New(rand.NewPCG(5, 23))
		eachCase(t, def, r, func(s *sized) {
			for a := range s.in {
				for res := range s.out {
					kind, _ := s.sig.AliasOf(a, res)
					if kind != op.Same && kind != op.Accumulate && kind != op.Update || s.in[a].DType.Size() == 0 || s.in[a].Shape.NumElements() == 0 {
						continue
					}
					for range 3 {
						l := s.lay(r, false)
						l.in[a] = l.put(s.in[a], func(*shape.Shape) *shape.Layout { return l.out[res].Layout })
						spread(l.in[a], s.in[a].Data)
						if l.out[res].Layout.IsContiguous() || !l.takes() {
							continue
						}
						total++
						if err := l.checkOver(a, res); err != nil {
							t.Fatalf("%s: %s: result %d in operand %d (%s): %v", def.Name, l.describe(), res, a, kind, err)
						}
					}
				}
			}
		})
	}
	if total < 1000 {
		t.Errorf("got %d calls, want 1000 at least", total)
	}
}

// checkOver runs the call with a result in the bytes of an operand.
func (l *laid) checkOver(a, res int) error {
	task, err := l.bindLaid()
	if err != nil {
		return err
	}
	for _, run := range []func(*compute.Task) error{forwards, backwards} {
		for i := range l.out {
			fill(l.out[i].Data, gapByte)
		}
		whole := aligned(len(l.in[a].Data))
		copy(whole, l.in[a].Data)
		c := task.Call
		c.In[a].Data, c.Out[res].Data = whole, whole
		if err := run(task); err != nil {
			return err
		}
		y := l.out[res]
		y.Data = whole
		got, err := gather(y)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, l.want[res]) {
			return fmt.Errorf("the result differs from that in bytes of its own")
		}
	}
	return nil
}

// Operands that lie where they are parts of the result stay as they are, and
// what no part covers is written: of results with and without gaps.
func TestStridedParts(t *testing.T) {
	for _, name := range []string{"concat", "pad"} {
		def, total := op.Builtin().Lookup(name), 0
		r := rand.New(rand.NewPCG(6, 29))
		eachCase(t, def, r, func(s *sized) {
			rank := s.out[0].Shape.Rank()
			at := s.sig.Parts(nil)
			if at == nil || s.out[0].Shape.NumElements() == 0 {
				return
			}
			parts := len(s.in)
			if name == "pad" {
				parts = 1
			}
			for range 6 {
				l := s.lay(r, false)
				y := l.out[0]
				for i := range parts {
					x := &l.in[i]
					if x.Shape.NumElements() == 0 {
						continue
					}
					x.Layout = mustLay(x.Shape, y.Layout.Strides())
					x.Data = y.Data[start(y, at[i*rank:][:rank]):][:bytesOf(*x)]
				}
				if !l.takes() {
					t.Fatalf("%s: %s: got no, want a kernel that takes parts of the result", name, l.describe())
				}
				task, err := l.bindLaid()
				if err != nil {
					t.Fatal(err)
				}
				fill(y.Data, gapByte)
				for i := range parts {
					if l.in[i].Shape.NumElements() > 0 {
						spread(l.in[i], s.in[i].Data)
					}
				}
				if err := forwards(task); err != nil {
					t.Fatal(err)
				}
				got, err := gather(y)
				if err != nil || !bytes.Equal(got, s.want[0]) {
					t.Fatalf("%s: %s: the result of operands that are parts of it differs (%v)", name, l.describe(), err)
				}
				total++
			}
		})
		if total < 50 {
			t.Errorf("%s: got %d calls, want 50 at least", name, total)
		}
	}
}

// Results that lie where they are boxes of the operand are not written.
func TestStridedBoxes(t *testing.T) {
	for _, name := range []string{"split", "slice"} {
		def, total := op.Builtin().Lookup(name), 0
		r := rand.New(rand.NewPCG(8, 31))
		eachCase(t, def, r, func(s *sized) {
			rank := s.in[0].Shape.Rank()
			l, boxes := s.lay(r, false), 0
			for i := range l.out {
				at := make([]int, rank)
				if s.out[i].IsZero() || s.out[i].Shape.NumElements() == 0 || s.sig.BoxOf(i, at) != 0 {
					continue
				}
				x, y := l.in[0], &l.out[i]
				y.Layout = mustLay(y.Shape, x.Layout.Strides())
				y.Data = x.Data[start(x, at):][:bytesOf(*y)]
				boxes++
			}
			if boxes == 0 || !l.takes() {
				return
			}
			task, err := l.bindLaid()
			if err != nil {
				t.Fatal(err)
			}
			before := slices.Clone(l.in[0].Data)
			if err := forwards(task); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(before, l.in[0].Data) {
				t.Fatalf("%s: %s: the operand was written", name, l.describe())
			}
			for i := range l.out {
				if l.out[i].IsZero() || l.out[i].Shape.NumElements() == 0 {
					continue
				}
				var got []byte
				n := l.out[i].DType.Size()
				eachElement(l.out[i], func(_, at int) { got = append(got, l.out[i].Data[at:at+n]...) })
				if !bytes.Equal(got, s.want[i]) {
					t.Fatalf("%s: %s: result %d as a box of the operand differs", name, l.describe(), i)
				}
			}
			total++
		})
		if total < 10 {
			t.Errorf("%s: got %d calls, want 10 at least", name, total)
		}
	}
}

// start is the first byte of the element at an index.
func start(a op.Arg, at []int) int {
	n := 0
	for i, k := range at {
		n += k * a.Layout.Strides()[i]
	}
	return n * a.DType.Size()
}

// bytesOf is how many bytes an operand or result reaches over.
func bytesOf(a op.Arg) int {
	n, err := a.Layout.ByteSpan(a.DType)
	if err != nil {
		panic(err)
	}
	return n
}
