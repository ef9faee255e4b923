package exec

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// A kernel that panics, on the caller's goroutine or on a worker's, ends the
// run with that panic. No buffer is left, the runner knows whether an input was
// written, and it runs again.
func TestPanicOfAKernel(t *testing.T) {
	memorytest.Check(t)
	const n = 1 << 18
	e := compiled(t, `func @main(donate %x: f32[262144], %m: f32[262144]) -> (f32[262144], f32[262144], i64[1,"?n"]) {
		%at = non_zero(%x)
		%s = add(%x, %m)
		%y = exp(donate %x)
		%z = tanh(donate %s)
		return %y, %z, %at
	}`, 2)
	pool := compute.NewPool(2)
	defer pool.Close()
	var slot Slot
	defer slot.Release()
	r, err := slot.Runner(e)
	if err != nil {
		t.Fatal(err)
	}
	run := func() error {
		return r.Run(pool, nil, [][]byte{floats(n, 1), floats(n, 1)}, [][]byte{nil, floats(n, 0), nil})
	}
	for k := range r.steps {
		task := r.steps[k].task
		if task == nil {
			continue // bound when it runs
		}
		first, last := 0, task.Tiles-1
		for _, at := range []int{first, last} {
			kernel := task.Kernel
			task.Kernel = watched{kernel, func(tile int) {
				if tile == at {
					panic("no more")
				}
			}}
			func() {
				defer func() {
					if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: compute: "+e.steps[k].call.Op.Name) || !strings.Contains(text, "no more") {
						t.Errorf("call %d, tile %d: got the panic %q, want one that names the operator and the cause", k, at, text)
					}
				}()
				t.Errorf("call %d, tile %d: got %v of the run, want a panic", k, at, run())
			}()
			if r.buffers != 0 {
				t.Errorf("call %d, tile %d: got %d values that still have a buffer, want none", k, at, r.buffers)
			}
			name := e.steps[k].call.Op.Name
			if wrote, want := r.End(), name == "exp" || name == "tanh"; wrote != want {
				t.Errorf("call %d (%s), tile %d: got that an input was written %v, want %v", k, name, at, wrote, want)
			}
			task.Kernel = kernel
		}
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if !r.End() || r.End() {
		t.Error("want that the run wrote into its input, and that this is said once")
	}
}
