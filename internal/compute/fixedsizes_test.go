package compute

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// Weights of convolutions of which the sizes are fixed are not transformed
// where the picture is so small that tiles of it are mostly outside. Those of
// open sizes have one form. A task is bound anew where values make fixed sizes
// others that want another form.
func TestFixedSizesDecideForm(t *testing.T) {
	batch := 1
	all := Fixed(func(int, int) bool { return true })
	at := func(size int) *op.Call {
		image := random(dtype.F32, 1, -1, 1, batch, 20, size, size)
		return call(t, "conv", attrs("pads", []int64{1, 1, 1, 1}), 1, image, random(dtype.F32, 5, -1, 1, 70, 20, 3, 3))
	}
	for _, v := range machine.Variants() {
		if v.Conv.Winograd[0].Input == nil {
			continue
		}
		transformed := func(size int, fixed Fixed) bool {
			task := mustBindFor(t, v, at(size), fixed)
			return strings.Contains(task.Forms[1].Name, "transformed")
		}
		for _, size := range []int{1, 3, 4, 5, 7, 14, 40} {
			if got, want := transformed(size, all), size >= 6; got != want {
				t.Errorf("%s: fixed %dx%d: got transformed weights %v, want %v", v.Name, size, size, got, want)
			}
			if !transformed(size, nil) || !transformed(size, func(_, axis int) bool { return axis != 3 }) {
				t.Errorf("%s: open %dx%d: got weights as they are, want transformed ones, as at other sizes", v.Name, size, size)
			}
		}
		batch = 16
		if !transformed(3, all) {
			t.Errorf("%s: 16 pictures of 3x3: got weights as they are, want transformed ones", v.Name)
		}
		if transformed(3, func(_, axis int) bool { return axis > 0 }) {
			t.Errorf("%s: any number of pictures of 3x3: got transformed weights, want them as they are", v.Name)
		}
		batch = 1
		for _, sizes := range [][2]int{{3, 14}, {14, 3}, {14, 7}, {2, 3}} {
			task := mustBindFor(t, v, at(sizes[0]), all)
			retype(task, at(sizes[1]))
			err := task.Refill()
			if same := (sizes[0] > 5) == (sizes[1] > 5); same != (err == nil) || !same && !errors.Is(err, ErrRebind) {
				t.Errorf("%s: from %d to %d: got the error %v, want none for the same form, else ErrRebind", v.Name, sizes[0], sizes[1], err)
			}
		}
	}
}

// The form of weights of 16 bits, too, follows from fixed sizes, and they are
// not transformed where the caller says so.
func TestHalfForms(t *testing.T) {
	constant := func(arg int) bool { return arg == 1 }
	all := Fixed(func(int, int) bool { return true })
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		at := func(size int) *op.Call {
			return call(t, "conv", attrs("pads", []int64{1, 1, 1, 1}), 1, random(dt, 1, -1, 1, 1, 20, size, size), random(dt, 5, -1, 1, 70, 20, 3, 3))
		}
		for _, v := range machine.Variants() {
			if v.Conv.Winograd[0].Input == nil {
				continue
			}
			for _, c := range []struct {
				size        int
				constants   Constants
				transformed bool
			}{
				{3, Constants{Is: constant}, true},
				{40, Constants{Is: constant}, true},
				{40, Constants{Is: constant, Direct: true}, false},
				{3, Constants{Is: constant, Fixed: all}, false},
				{40, Constants{Is: constant, Fixed: all}, true},
			} {
				task, err := bindFor(v, at(c.size), c.constants)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(task.Forms[1].Name, "transformed"); got != c.transformed {
					t.Errorf("%s: %s of %dx%d, direct %v, fixed %v: got transformed weights %v, want %v", v.Name, dt, c.size, c.size, c.constants.Direct, c.constants.Fixed != nil, got, c.transformed)
				}
			}
			task := mustBindFor(t, v, at(3), all)
			retype(task, at(40))
			if err := task.Refill(); !errors.Is(err, ErrRebind) {
				t.Errorf("%s: %s from 3x3 to 40x40: got the error %v, want ErrRebind", v.Name, dt, err)
			}
		}
	}
}

func mustBindFor(t *testing.T, v *kernel.Variant, c *op.Call, fixed Fixed) *Task {
	t.Helper()
	task, err := bindFor(v, c, Constants{Is: func(arg int) bool { return arg == 1 }, Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	return task
}
