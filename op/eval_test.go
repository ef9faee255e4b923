package op_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// A call that a shape rule accepts is computed or refused: it does not panic,
// writes only its results, and ends. Sizes may be zero, and those beside a zero
// absurd.
func TestEvalOfHostileCalls(t *testing.T) {
	calls := map[string][]*op.Sig{}
	for _, s := range tableCalls(t, false) {
		calls[s.Def.Name] = append(calls[s.Def.Name], s)
	}
	for _, def := range op.Builtin().Defs() {
		if def.Regions > 0 {
			delete(calls, def.Name)
		} else if calls[def.Name] == nil {
			calls[def.Name] = []*op.Sig{plainCall(def)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				for range 4 {
					s := mutate(rt, rapid.SampledFrom(calls[name]).Draw(rt, "call"))
					for i := range s.Args {
						if !s.Args[i].IsZero() && rapid.IntRange(0, 3).Draw(rt, "small") == 0 {
							s.Args[i].Shape = smallShape(rt)
						}
					}
					evalHostile(rt, s)
				}
			})
		})
	}
}

// plainCall is a call on matrices, with as few operands as there may be.
func plainCall(def *op.Def) *op.Sig {
	s := &op.Sig{Def: def, Results: make([]op.Type, 1)}
	for range max(def.MinArgs, 1) {
		s.Args = append(s.Args, op.Type{DType: dtype.F32, Shape: shape.MustOf(3, 4)})
	}
	return s
}

func smallShape(rt *rapid.T) *shape.Shape {
	return shape.MustOf(rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 3, 8, 17, 33}), 0, 5).Draw(rt, "sizes")...)
}

// fence is how many bytes behind a result must stay as they were.
const fence = 64

func evalHostile(rt *rapid.T, s *op.Sig) {
	c := &op.Call{Sig: s}
	for i, a := range s.Args {
		var in op.Arg
		if !a.IsZero() {
			if n, err := a.Bytes(); err != nil || n > 1<<18 || a.DType == dtype.String {
				return
			}
			in = op.Arg{Type: a, Layout: shape.RowMajor(a.Shape), Data: hostileData(rt, s, i)}
		}
		c.In = append(c.In, in)
	}
	s.Known = func(i int) ([]byte, bool) { return c.In[i].Data, !c.In[i].IsZero() }
	if op.InferTypes(s) != nil {
		return
	}
	if s.Def.Bound != nil {
		most, ok, err := s.Largest()
		if err != nil || !ok {
			return
		}
		s.Results = most
	}
	for _, r := range s.Results {
		n, err := r.Bytes()
		if err != nil || n > 1<<20 || r.DType == dtype.String {
			return
		}
		whole := slices.Repeat([]byte{0xa5}, n+fence)
		c.Out = append(c.Out, op.Arg{Type: r, Layout: shape.RowMajor(r.Shape), Data: whole[:n]})
	}
	late := time.AfterFunc(time.Minute, func() { panic("no end of " + s.Def.Name) })
	defer late.Stop()
	_ = compute.Eval(c) // an error is as good
	for i, r := range c.Out {
		n := len(r.Data)
		if slices.ContainsFunc(r.Data[:n+fence][n:], func(b byte) bool { return b != 0xa5 }) {
			rt.Fatalf("%s %v %v: wrote behind result %d, %s", s.Def.Name, s.Args, s.Attrs, i, r.Type)
		}
	}
}

// hostileData are the bytes of an operand: its known value, absurd numbers, or
// small ones.
func hostileData(rt *rapid.T, s *op.Sig, i int) []byte {
	n, _ := s.Args[i].Bytes()
	data := make([]byte, n, n/8*8+16)
	known, ok := s.Known(i)
	switch {
	case ok && len(known) == n:
		copy(data, known)
	case rapid.Bool().Draw(rt, "absurd"):
		part := hostileBytes(rt, min(n, 64))
		for at := 0; at < n; at += copy(data[at:], part) {
		}
	default:
		size := max(1, s.Args[i].DType.Size())
		for at := 0; at < n; at += size {
			data[at] = byte(at / size % 5)
		}
	}
	return data
}
