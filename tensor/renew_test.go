package tensor

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

// lent returns four numbers as bytes of other code.
func lent(first float32) []byte {
	return asBytes([]float32{first, first + 1, first + 2, first + 3})
}

func renewable(t *testing.T, data []byte) *Tensor {
	t.Helper()
	buf := memory.AdoptRenewable(data, memory.Imported|memory.ReadOnly, nil)
	x := ok(FromBuffer(buf, 0, dtype.F32, shape.RowMajor(shape.MustOf(2, 2))))(t)
	if err := buf.Release(); err != nil {
		t.Fatal(err)
	}
	return x
}

func renew(x *Tensor, data []byte, dims ...int) bool {
	return x.Renew(data, "", nil, 0, dtype.F32, shape.RowMajor(shape.MustOf(dims...)))
}

func wantFirst(t *testing.T, x *Tensor, want float32) {
	t.Helper()
	if got := ok(Values[float32](x))(t); got[0] != want || got[3] != want+3 {
		t.Errorf("got %v, want %v and on", got, want)
	}
}

func TestRenew(t *testing.T) {
	memorytest.Check(t)
	x := renewable(t, lent(0))
	for i := range 4 {
		wantFirst(t, x, float32(i*10))
		view := ok(x.Slice(Range{Start: 0, Stop: 1}))(t)
		if err := x.Release(); err != nil {
			t.Fatal(err)
		}
		if renew(x, lent(99), 2, 2) {
			t.Fatal("renewed while a view is out")
		}
		if got := ok(Values[float32](view))(t); got[0] != float32(i*10) {
			t.Errorf("the view: got %v, want %d first", got, i*10)
		}
		if err := view.Release(); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Use(); !errors.Is(err, ErrReleased) {
			t.Errorf("released: got %v, want ErrReleased", err)
		}
		if !renew(x, lent(float32(i+1)*10), 2, 2) {
			t.Fatal("not renewed, want it: nobody holds it")
		}
		if _, err := view.Use(); !errors.Is(err, ErrReleased) {
			t.Errorf("the view of the life before: got %v, want ErrReleased", err)
		}
		if renew(x, lent(99), 2, 2) {
			t.Fatal("renewed while it lives")
		}
		if x.IsExclusive() {
			t.Error("a renewed tensor is exclusive")
		}
	}
	release(t, x)
}

func TestRenewRefusesWhatIsUnlike(t *testing.T) {
	memorytest.Check(t)
	x := renewable(t, lent(0))
	release(t, x)
	square := shape.RowMajor(shape.MustOf(2, 2))
	for what, renewed := range map[string]bool{
		"another shape":  renew(x, lent(0), 4),
		"another layout": x.Renew(lent(0), "", nil, 0, dtype.F32, ok(shape.Strided(shape.MustOf(2, 2), 1, 2))(t)),
		"another type":   x.Renew(lent(0), "", nil, 0, dtype.I32, square),
		"another offset": x.Renew(lent(0), "", nil, 4, dtype.F32, square),
		"more bytes":     x.Renew(append(lent(0), 0), "", nil, 0, dtype.F32, square),
		"no tensor":      (*Tensor)(nil).Renew(lent(0), "", nil, 0, dtype.F32, square),
		"a zero tensor":  new(Tensor).Renew(lent(0), "", nil, 0, dtype.F32, square),
	} {
		if renewed {
			t.Errorf("%s: it was renewed", what)
		}
	}
	own := ok(Of([]float32{1, 2, 3, 4}, 2, 2))(t)
	release(t, own)
	if renew(own, lent(0), 2, 2) {
		t.Error("a tensor with memory of its own was renewed")
	}
	if !renew(x, lent(5), 2, 2) {
		t.Fatal("not renewed, want it")
	}
	wantFirst(t, x, 5)
	release(t, x)
}

// The export of a tensor belongs to one life: a new one is made for the next,
// and a life lasts while the tensor is exported.
func TestRenewAndExports(t *testing.T) {
	memorytest.Check(t)
	x := renewable(t, lent(0))
	var seen []unsafe.Pointer
	show := func() {
		t.Helper()
		if p := x.TryExport(); p != nil {
			t.Fatal("the tensor is shown as it was before")
		}
		p := ok(x.Export(ReadOnlyExport))(t)
		if p != nil {
			t.Fatal("the tensor is shown as it was before")
		}
		p = ok(x.Show(func(e Exported) (*memory.Buffer, error) {
			b, err := memory.Alloc(8, memory.Exports)
			if err == nil {
				*(*unsafe.Pointer)(unsafe.Pointer(&b.Bytes()[0])) = unsafe.Pointer(&e.Data[0])
			}
			return b, err
		}))(t)
		at := *(*unsafe.Pointer)(p)
		if at != unsafe.Pointer(&x.bytes()[0]) {
			t.Error("foreign code sees other bytes than the tensor has")
		}
		seen = append(seen, at)
		if again := x.TryExport(); again != p {
			t.Errorf("shown again: got %v, want %v", again, p)
		}
		x.EndExport(ReadOnlyExport)
	}
	for i := range 3 {
		show()
		release(t, x)
		if renew(x, lent(99), 2, 2) {
			t.Fatal("renewed while an export is out")
		}
		if got := *(*float32)(seen[i]); got != float32(i*10) {
			t.Errorf("the export: got %v, want %d", got, i*10)
		}
		x.EndExport(ReadOnlyExport)
		if !renew(x, lent(float32(i+1)*10), 2, 2) {
			t.Fatal("not renewed, want it: nobody holds it")
		}
	}
	release(t, x)
}

// A tensor that was given up to a view says so, until both are over and it
// lives again.
func TestRenewAfterDonation(t *testing.T) {
	memorytest.Check(t)
	x := renewable(t, lent(0))
	view := ok(x.Reuse().Reshape(4))(t)
	if renew(x, lent(9), 2, 2) {
		t.Fatal("renewed while the view lives")
	}
	if _, err := x.Use(); !errors.Is(err, ErrDonated) && !errors.Is(err, ErrReleased) || !strings.Contains(err.Error(), "reshape") {
		t.Errorf("got %v, want what took it", err)
	}
	wantFirst(t, view, 0)
	release(t, view)
	if !renew(x, lent(9), 2, 2) {
		t.Fatal("not renewed, want it: nobody holds it")
	}
	wantFirst(t, x, 9)
	release(t, x)
	if _, err := x.Use(); !errors.Is(err, ErrReleased) || strings.Contains(err.Error(), "reshape") {
		t.Errorf("got %v, want that it is released, and nothing of the life before", err)
	}
}

func TestRenewMakesNoObjects(t *testing.T) {
	x := renewable(t, lent(0))
	data, square := lent(1), shape.RowMajor(shape.MustOf(2, 2))
	end := func() {}
	if n := testing.AllocsPerRun(1000, func() {
		release(t, x)
		if !x.Renew(data, "again", end, 0, dtype.F32, square) {
			t.Fatal("not renewed")
		}
	}); n != 0 {
		t.Errorf("got %v objects, want none", n)
	}
	release(t, x)
}
