package compute

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tenure-go/tenure/op"
)

// userKernel runs an operator that brings its own kernel, as one tile. A panic
// in it is an error of the operator, not ours.
type userKernel struct {
	scratch int
	result  error
}

func bindUser(*op.Call) (Kernel, error) { return &userKernel{}, nil }

func (k *userKernel) Refill(t *Task) error {
	c := t.Call
	k.scratch = 0
	if c.Def.Scratch != nil {
		n, err := c.Def.Scratch(c.Sig)
		if err != nil {
			return fmt.Errorf("scratch: %w", err)
		}
		if n < 0 {
			return fmt.Errorf("scratch: got %d bytes, want zero or more", n)
		}
		k.scratch = n
	}
	t.Tiles, t.Scratch = 1, k.scratch
	return nil
}

func (k *userKernel) Tile(t *Task, _ int, scratch []byte) {
	t.Call.Scratch = scratch[:k.scratch:k.scratch]
	k.result = runUser(t.Call)
	t.Call.Scratch = nil
}

func (k *userKernel) Finish(*Task) error { return k.result }

func runUser(c *op.Call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kernel panicked: %v%s", p, panicPlace())
		}
	}()
	return c.Def.Kernel(c)
}

// panicPlace names the line that panicked, to a deferred function.
func panicPlace() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf(" (at %s:%d)", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
