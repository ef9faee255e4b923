package dlpack

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func ok[T any](x T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// counting is an f32[2,3] with the elements 0 to 5.
func counting(t testing.TB) *tensor.Tensor {
	t.Helper()
	return ok(tensor.Of([]float32{0, 1, 2, 3, 4, 5}, 2, 3))(t)
}

func wantErr(t testing.TB, what string, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want one of kind %v with %q", what, err, kind, text)
	}
}

// words reads the numbers that a struct's shape or strides point to.
func words(address uintptr, n int32) []int64 {
	if address == 0 {
		return nil
	}
	return slices.Clone(unsafe.Slice((*int64)(pointer(address)), n))
}

func TestExportDescribes(t *testing.T) {
	memorytest.Check(t)
	x := counting(t)
	defer release(t, x)
	m := ok(Export(x))(t)
	defer m.Delete(nil)
	data, first := x.UnsafeBytes()
	want := DLManagedTensorVersioned{
		Version: Version{1, 3}, ManagerCtx: m.ManagerCtx, Deleter: deleters.readOnly, Flags: FlagReadOnly,
		Tensor: DLTensor{
			Data: uintptr(unsafe.Pointer(&data[first])), Device: Device{CPU, 0}, NDim: 2, DType: DataType{Float, 32, 1},
			Shape: m.Tensor.Shape, Strides: m.Tensor.Strides,
		},
	}
	if *m != want || m.ManagerCtx == 0 {
		t.Errorf("got %+v, want %+v", *m, want)
	}
	if dims, strides := words(m.Tensor.Shape, 2), words(m.Tensor.Strides, 2); !slices.Equal(dims, []int64{2, 3}) || !slices.Equal(strides, []int64{3, 1}) {
		t.Errorf("got shape %v and strides %v, want [2 3] and [3 1]", dims, strides)
	}
}

func TestExportLayouts(t *testing.T) {
	memorytest.Check(t)
	base := ok(tensor.Of([]float32{0, 1, 2, 3, 4, 5}, 1, 2, 3))(t)
	defer release(t, base)
	buf := ok(memory.Alloc(64, memory.IO))(t)
	defer buf.Release()
	odd := ok(shape.Strided(shape.MustOf(1, 3, 1, 2), 77, 4, -9, 2))(t)
	for _, c := range []struct {
		name          string
		view          *tensor.Tensor
		dims, strides []int64
		skip          uintptr // bytes from the buffer's begin to the first element
		other         bool    // it lies in buf, not in base
	}{
		{"permuted", ok(base.Permute(2, 0, 1))(t), []int64{3, 1, 2}, []int64{1, 6, 3}, 0, false},
		{"sliced", ok(base.Slice(tensor.All, tensor.Range{Start: 1, Stop: 2}))(t), []int64{1, 1, 3}, []int64{3, 3, 1}, 12, false},
		{"reversed", ok(tensor.FromBuffer(buf, 16, dtype.F32, ok(shape.Strided(shape.MustOf(2, 3), -3, 1))(t)))(t), []int64{2, 3}, []int64{-3, 1}, 16, true},
		{"broadcast", ok(base.Broadcast(4, 2, 3))(t), []int64{4, 2, 3}, []int64{0, 3, 1}, 0, false},
		{"odd strides", ok(tensor.FromBuffer(buf, 0, dtype.U8, odd))(t), []int64{1, 3, 1, 2}, []int64{12, 4, 4, 2}, 0, true},
		{"empty", ok(tensor.New(dtype.F32, shape.MustOf(2, 0, 3)))(t), []int64{2, 0, 3}, []int64{3, 3, 1}, 0, true},
		{"rank 0", ok(base.Slice(tensor.All, tensor.Only(1), tensor.Only(1)))(t), nil, nil, 16, false},
	} {
		x := c.view
		if c.name == "rank 0" {
			x = ok(c.view.Reshape())(t)
			release(t, c.view)
		}
		m := ok(Export(x))(t)
		d := m.Tensor
		if dims, strides := words(d.Shape, d.NDim), words(d.Strides, d.NDim); !slices.Equal(dims, c.dims) || !slices.Equal(strides, c.strides) {
			t.Errorf("%s: got shape %v and strides %v, want %v and %v", c.name, dims, strides, c.dims, c.strides)
		}
		start, _ := base.UnsafeBytes()
		if c.other {
			start = buf.Bytes()
		}
		want := uintptr(unsafe.Pointer(&start[0])) + c.skip
		if x.NumElements() == 0 {
			want = 0
		}
		if d.Data != want || d.ByteOffset != 0 {
			t.Errorf("%s: got data at %#x and offset %d, want %#x and 0", c.name, d.Data, d.ByteOffset, want)
		}
		m.Delete(nil)
		release(t, x)
	}
}

// TestRoundTrip hands every element type in several layouts out and takes it
// back, both structs.
func TestRoundTrip(t *testing.T) {
	memorytest.Check(t)
	for d := dtype.Invalid + 1; d.IsValid(); d++ {
		if _, _, _, has := d.DLPack(); !has {
			continue
		}
		s := shape.MustOf(2, 3, 4)
		bytes := make([]byte, ok(shape.Bytes(d, s))(t))
		for i := range bytes {
			bytes[i] = byte(i*37 + 1)
			if d == dtype.Bool {
				bytes[i] &= 1
			}
		}
		x := ok(tensor.FromBytes(d, s, bytes))(t)
		views := []*tensor.Tensor{ok(x.View())(t)}
		if d.Size() > 0 {
			views = append(views, ok(x.Permute(1, 2, 0))(t), ok(x.Slice(tensor.All, tensor.Range{Start: 1, Stop: 3}, tensor.Range{Step: 2, Stop: 4}))(t))
		}
		for _, v := range views {
			m := ok(Export(v))(t)
			y := ok(Import(m, nil))(t)
			wantSame(t, y, v, true)
			if err := y.WhyNotWritable(); !errors.Is(err, tensor.ErrShared) {
				t.Errorf("%s: import of a read-only export: got %v, want ErrShared", d, err)
			}
			release(t, y)
			c := ok(Import(ok(ExportCopy(v))(t), nil))(t)
			wantSame(t, c, v, false)
			release(t, c)
			l := ok(ImportLegacy(ok(ExportLegacyCopy(v))(t), nil))(t)
			wantSame(t, l, v, false)
			release(t, l)
			release(t, v)
		}
		w := ok(ImportLegacy(ok(ExportLegacy(x))(t), nil))(t)
		release(t, w)
		wantSame(t, x, x, true)
		release(t, x)
	}
}

// wantSame compares two tensors element by element, and whether they show the
// same bytes.
func wantSame(t *testing.T, got, want *tensor.Tensor, sameBytes bool) {
	t.Helper()
	if got.DType() != want.DType() || got.Shape() != want.Shape() {
		t.Fatalf("got %s%s, want %s%s", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	a, b := ok(got.Copy(memory.Scratch))(t), ok(want.Copy(memory.Scratch))(t)
	defer release(t, a)
	defer release(t, b)
	x, _ := a.UnsafeBytes()
	y, _ := b.UnsafeBytes()
	if !slices.Equal(x, y) {
		t.Errorf("%s%s: got % x, want % x", got.DType(), got.Layout(), x, y)
	}
	g, i := got.UnsafeBytes()
	w, j := want.UnsafeBytes()
	if (&g[i] == &w[j]) != sameBytes {
		t.Errorf("%s%s: got the first element at %p, want the same as %p: %t", got.DType(), got.Layout(), &g[i], &w[j], sameBytes)
	}
}

func TestExportIsCached(t *testing.T) {
	memorytest.Check(t)
	x := counting(t)
	first := ok(Export(x))(t)
	second := ok(Export(x))(t)
	if first != second {
		t.Errorf("got structs at %p and %p, want the same", first, second)
	}
	first.Delete(nil)
	second.Delete(nil)
	w := ok(ExportWritable(x))(t)
	if w == first || w.Flags != 0 || w.Deleter == first.Deleter {
		t.Errorf("writable export: got %p with flags %d, want one of its own without flags", w, w.Flags)
	}
	w.Delete(nil)
	ok(ExportLegacy(x))(t).Delete(nil)
	if again := ok(ExportWritable(x))(t); again != w {
		t.Errorf("second writable export: got %p, want %p", again, w)
	}
	w.Delete(nil)
	exports := func() int64 { return memory.Stats().Of(memory.Exports).Buffers }
	before := exports()
	if got := testing.AllocsPerRun(100, func() {
		m, err := Export(x)
		if err != nil {
			t.Error(err)
		}
		m.Delete(nil)
	}); got != 0 {
		t.Errorf("cached export and delete: got %v allocations, want 0", got)
	}
	if got := exports(); got != before {
		t.Errorf("cached exports made %d buffers, want none", got-before)
	}
	release(t, x)
	if got := exports(); got != before-1 {
		t.Errorf("after the release: got %d structs gone, want 1", before-got)
	}
}

func TestFirstExportsMeet(t *testing.T) {
	memorytest.Check(t)
	for range 50 {
		x := counting(t)
		var made [4]*DLManagedTensorVersioned
		var start, done sync.WaitGroup
		start.Add(1)
		for i := range made {
			done.Go(func() {
				start.Wait()
				m, err := Export(x)
				if err != nil {
					t.Error(err)
				}
				made[i] = m
			})
		}
		start.Done()
		done.Wait()
		for _, m := range made {
			if m != made[0] {
				t.Errorf("got structs %v, want one", made)
			}
			m.Delete(nil)
		}
		release(t, x)
	}
}

func negate(op string, o tensor.Operand) error {
	taken, err := tensor.Take(op, o)
	if err != nil {
		return err
	}
	taken.Commit()
	return nil
}

func TestExportedIsNotExclusive(t *testing.T) {
	memorytest.Check(t)
	x := counting(t)
	m := ok(Export(x))(t)
	if x.IsExclusive() {
		t.Error("an exported tensor is exclusive")
	}
	wantErr(t, "donate", negate("relu", x.Donate()), tensor.ErrShared, "1 export is out")
	_, err := tensor.Write[float32](x)
	wantErr(t, "write", err, tensor.ErrShared, "1 export is out")
	_, err = ExportWritable(x)
	wantErr(t, "writable export", err, tensor.ErrShared, "1 export is out")
	_, err = ExportLegacy(x)
	wantErr(t, "legacy export", err, tensor.ErrShared, "1 export is out")
	wantValues(t, x, 0, 1, 2, 3, 4, 5)
	m.Delete(nil)

	w := ok(ExportWritable(x))(t)
	*(*float32)(pointer(w.Tensor.Data)) = 9
	wantErr(t, "donate", negate("relu", x.Donate()), tensor.ErrWriting, "exported for writing")
	_, err = tensor.Read[float32](x)
	wantErr(t, "read", err, tensor.ErrWriting, "exported for writing")
	_, err = Export(x)
	wantErr(t, "export", err, tensor.ErrWriting, "exported for writing")
	_, err = x.View()
	wantErr(t, "view", err, tensor.ErrWriting, "exported for writing")
	w.Delete(nil)
	wantValues(t, x, 9, 1, 2, 3, 4, 5)

	if err := negate("relu", x.Donate()); err != nil {
		t.Errorf("donate after all exports ended: %v", err)
	}
	_, err = Export(x)
	wantErr(t, "export of a donated tensor", err, tensor.ErrDonated, "donated to relu")
}

func TestExportRefuses(t *testing.T) {
	memorytest.Check(t)
	_, err := Export(nil)
	wantErr(t, "no tensor", err, tensor.ErrNoTensor, "got no tensor")
	x := counting(t)
	v := ok(x.Broadcast(2, 2, 3))(t)
	_, err = ExportWritable(v)
	wantErr(t, "overlapping", err, tensor.ErrLayout, "no two elements share a byte")
	_, err = ExportWritable(x)
	wantErr(t, "shared", err, tensor.ErrShared, "2 holders")
	release(t, v)
	wrapped := ok(tensor.Wrap([]float32{1}, 1))(t)
	_, err = ExportLegacy(wrapped)
	wantErr(t, "wrapped", err, tensor.ErrShared, "imported")
	ok(Export(wrapped))(t).Delete(nil)
	release(t, wrapped)
	old := memory.SetLimit(memory.Stats().Total.Current + 64)
	_, err = Export(x)
	memory.SetLimit(old)
	wantErr(t, "at the limit", err, memory.ErrLimit, "exports")
	if !x.IsExclusive() {
		t.Error("a failed export left a use behind")
	}
	release(t, x)
	_, err = Export(x)
	wantErr(t, "released", err, tensor.ErrReleased, "export: f32[2,3] already released")
	if _, err := ExportCopy(x); !errors.Is(err, tensor.ErrReleased) {
		t.Errorf("copy of a released tensor: got %v, want ErrReleased", err)
	}
}

// TestDeleteTwice: the second call finds that no export is out, does nothing
// and is counted. In package capi the same test calls from C.
func TestDeleteTwice(t *testing.T) {
	memorytest.Check(t)
	x := counting(t)
	for _, export := range []func(*tensor.Tensor) (*DLManagedTensorVersioned, error){Export, ExportWritable} {
		m, before := ok(export(x))(t), DeletedTwice()
		for range 3 {
			m.Delete(nil)
		}
		if got := DeletedTwice() - before; got != 2 || !x.IsExclusive() {
			t.Errorf("got %d deletions too many and %v, want 2 and an exclusive tensor", got, x.WhyNotWritable())
		}
	}
	release(t, x)
}

// TestLifetimes ends tensor, export and import in every order: the bytes stay
// intact while one of them holds them, and are freed with the last.
func TestLifetimes(t *testing.T) {
	memorytest.Check(t)
	for _, order := range [][]string{{"tensor", "import", "view"}, {"tensor", "view", "import"}, {"import", "tensor", "view"}, {"import", "view", "tensor"}, {"view", "tensor", "import"}, {"view", "import", "tensor"}} {
		before := memory.Stats().Total.Current
		x := counting(t)
		y := ok(Import(ok(Export(x))(t), nil))(t)
		held := map[string]*tensor.Tensor{"tensor": x, "import": y, "view": ok(y.Slice(tensor.Only(1)))(t)}
		for i, who := range order {
			release(t, held[who])
			delete(held, who)
			if i == 1 {
				for _, last := range held {
					values := ok(tensor.Values[float32](last))(t)
					if values[len(values)-1] != 5 {
						t.Errorf("%v: got %v in the last holder, want it to end with 5", order, values)
					}
				}
			}
		}
		if got := memory.Stats().Total.Current; got != before {
			t.Errorf("%v: got %d bytes left, want none", order, got-before)
		}
	}
}

// TestDropped forgets a tensor without releasing it, while an export is out:
// that is reported, the consumer keeps the bytes, and they go when it lets go.
func TestDropped(t *testing.T) {
	before := memory.Stats().Total.Current
	leaks := make(chan memory.Leak, 1)
	old := memory.OnLeak(func(l memory.Leak) { leaks <- l })
	defer func() { memory.OnLeak(old) }()
	m := ok(Export(counting(t)))(t)
	var leak memory.Leak
	for end := time.Now().Add(10 * time.Second); leak.ID == 0 && time.Now().Before(end); {
		runtime.GC()
		select {
		case leak = <-leaks:
		case <-time.After(time.Millisecond):
		}
	}
	if leak.Exports != 1 || leak.Freed {
		t.Fatalf("got the report %+v, want one with an export, not freed", leak)
	}
	if got := unsafe.Slice((*float32)(pointer(m.Tensor.Data)), 6); got[5] != 5 || got[1] != 1 {
		t.Errorf("got %v in the consumer's bytes, want 0 to 5", got)
	}
	m.Delete(nil)
	if got := memory.Stats().Total.Current; got != before {
		t.Errorf("after the export's end: got %d bytes left, want none", got-before)
	}
}
