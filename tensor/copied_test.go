package tensor

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// copyOf hides a copy from go vet.
func copyOf[V any](v *V) *V { return v }

// uses returns how many uses of x are out, the writer's among them.
func uses(x *Tensor) int {
	n, _ := x.h.Uses()
	return n
}

// orders calls f with every order of 0 to n-1.
func orders(n int, f func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var permute func(from int)
	permute = func(from int) {
		if from == n {
			f(order)
			return
		}
		for i := from; i < n; i++ {
			order[from], order[i] = order[i], order[from]
			permute(from + 1)
			order[from], order[i] = order[i], order[from]
		}
	}
	permute(0)
}

// Three readers with one, two and three copies, released in every order: a use
// ends with the first of its copies, and no other.
func TestCopiesOfReadersEndOneUse(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
	views := []int{0, 1, 1, 2, 2, 2} // of which reader each is
	orders(len(views), func(order []int) {
		var first [3]View[float32]
		for i := range first {
			first[i] = ok(Read[float32](x))(t)
		}
		var copies [6]View[float32]
		for i, reader := range views {
			copies[i] = *copyOf(&first[reader])
		}
		ended := map[int]bool{}
		for _, i := range order {
			copies[i].Release()
			copies[i].Release()
			ended[views[i]] = true
			if got, want := uses(x), len(first)-len(ended); got != want {
				t.Fatalf("order %v, after %d: got %d uses, want %d", order, i, got, want)
			}
		}
		for i := range first {
			first[i].Release()
		}
	})
	if err := x.WhyNotWritable(); err != nil {
		t.Errorf("after all: got %v, want a writable tensor", err)
	}
	release(t, x)
}

// A copy of a writer's view that has ended does nothing to the next writer, nor
// to a reader, nor to the next tensor that the record behind the handle serves.
func TestStaleCopyOfAWriter(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
	w := ok(Write[float32](x))(t)
	stale := []View[float32]{*copyOf(&w), *copyOf(&w), *copyOf(&w), *copyOf(&w)}
	w.Release()
	next := ok(Write[float32](x))(t)
	stale[0].Release()
	wantErr(t, "read while the next writes", second(Read[float32](x)), ErrWriting)
	next.Release()
	r := ok(x.Use())(t)
	stale[1].Release()
	wantErr(t, "write while it is read", second(x.Lock()), ErrShared)
	r.Release()
	release(t, x)
	y := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
	last := ok(y.Lock())(t)
	stale[2].Release()
	wantErr(t, "read while the last writes", second(y.Use()), ErrWriting)
	last.Release()
	stale[3].Release()
	release(t, y)
}

// A copy ends the use when the first view is forgotten: all copies have one
// use, and any of them ends it.
func TestCopyEndsTheUse(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
	r := ok(Read[float32](x))(t)
	c := *copyOf(&r)
	release(t, x)
	c.Release()
	if n := x.Holders(); n != 0 {
		t.Errorf("got %d holders, want none", n)
	}
	y := ok(Of([]float32{5, 6, 7, 8}, 4))(t) // may get the record of x
	u := ok(Read[float32](y))(t)
	r.Release()
	if got := uses(y); got != 1 {
		t.Errorf("after a stale release: got %d uses, want 1", got)
	}
	u.Release()
	release(t, y)
}

// Random programs of readers, writers, copies and releases against a set of the
// uses that are out.
func TestRandomCopies(t *testing.T) {
	memorytest.Check(t)
	for seed := range uint64(200) {
		draw := rand.New(rand.NewPCG(seed, 14))
		x := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
		type copied struct {
			view  View[float32]
			bytes Bytes
			of    int
		}
		var copies []*copied
		out := map[int]bool{}
		writing := false
		for step := range 200 {
			switch draw.IntN(6) {
			case 0:
				if v, err := Read[float32](x); err == nil {
					copies = append(copies, &copied{view: *copyOf(&v), of: step})
					out[step] = true
				}
			case 1:
				v, err := Write[float32](x)
				if (err == nil) != (len(out) == 0) {
					t.Fatalf("seed %d, step %d: write with %d uses out: got %v", seed, step, len(out), err)
				}
				if err == nil {
					copies = append(copies, &copied{view: *copyOf(&v), of: step})
					out[step], writing = true, true
				}
			case 2:
				if b, err := x.Use(); err == nil {
					copies = append(copies, &copied{bytes: *copyOf(&b), of: step})
					out[step] = true
				}
			case 3:
				if len(copies) > 0 {
					c := new(copied)
					*c = *copyOf(copies[draw.IntN(len(copies))])
					copies = append(copies, c)
				}
			default:
				if len(copies) > 0 {
					c := copies[draw.IntN(len(copies))]
					c.view.Release()
					c.bytes.Release()
					delete(out, c.of)
					writing = writing && len(out) > 0
				}
			}
			if got := uses(x); got != len(out) {
				t.Fatalf("seed %d, step %d: got %d uses, want %d", seed, step, got, len(out))
			}
			if err := x.h.Err(); (err != nil) != writing {
				t.Fatalf("seed %d, step %d: got %v, want a writer: %v", seed, step, err, writing)
			}
		}
		for _, c := range copies {
			c.view.Release()
			c.bytes.Release()
		}
		release(t, x)
	}
}

// Goroutines that release copies of one view at once end one use, and leave
// that of another view.
func TestConcurrentCopies(t *testing.T) {
	memorytest.Check(t)
	x := ok(Of([]float32{1, 2, 3, 4}, 4))(t)
	innocent := ok(Read[float32](x))(t)
	for range 500 {
		v := ok(Read[float32](x))(t)
		var copies [4]View[float32]
		var start, done sync.WaitGroup
		start.Add(1)
		for i := range copies {
			copies[i] = *copyOf(&v)
			done.Go(func() {
				start.Wait()
				copies[i].Release()
			})
		}
		start.Done()
		done.Wait()
		if got := uses(x); got != 1 {
			t.Fatalf("got %d uses, want the one that is left", got)
		}
	}
	innocent.Release()
	release(t, x)
}

// go vet finds every copy that is marked, and nothing in correct code.
func TestVetFindsCopies(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	for _, pkg := range []string{"copied", "correct"} {
		file := "testdata/" + pkg + "/" + pkg + ".go"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasSuffix(line, "// copied") {
				want = append(want, fmt.Sprintf("%s.go:%d", pkg, i+1))
			}
		}
		report, err := exec.Command(goTool, "vet", "-copylocks", "./testdata/"+pkg).CombinedOutput()
		if (err != nil) != (len(want) > 0) {
			t.Errorf("%s: got %v\n%s", pkg, err, report)
		}
		for _, line := range strings.Split(string(report), "\n") {
			if at := strings.Index(line, pkg+".go:"); at >= 0 && strings.Contains(line, "noCopy") {
				got = append(got, strings.Join(strings.SplitN(line[at:], ":", 3)[:2], ":"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got reports at %v, want %v\n%s", pkg, got, want, report)
		}
	}
}
