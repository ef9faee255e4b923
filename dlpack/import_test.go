package dlpack

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// producer is another library: it made a struct and counts how often it gets it
// back.
type producer struct {
	t       testing.TB
	m       *DLManagedTensorVersioned
	dims    []int64
	strides []int64
	data    []uint64
	deleted int
}

const producersDeleter = 0xdead0000

// produce makes the struct of a row-major f32[2,3] with the elements 0 to 5.
func produce(t testing.TB) *producer {
	p := &producer{t: t, dims: []int64{2, 3}, strides: []int64{3, 1}, data: make([]uint64, 64)}
	f := unsafe.Slice((*float32)(unsafe.Pointer(&p.data[0])), 6)
	for i := range f {
		f[i] = float32(i)
	}
	p.m = &DLManagedTensorVersioned{
		Version: Version{1, 3}, Deleter: producersDeleter,
		Tensor: DLTensor{Data: p.address(), Device: Device{Type: CPU}, NDim: 2, DType: DataType{Float, 32, 1}, Shape: at(p.dims), Strides: at(p.strides)},
	}
	return p
}

func (p *producer) address() uintptr { return uintptr(unsafe.Pointer(&p.data[0])) }

func at(words []int64) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(words))) }

// layout sets the struct's dimensions and strides; without strides they are
// NULL.
func (p *producer) layout(dims, strides []int64) {
	p.dims, p.strides = dims, strides
	p.m.Tensor.NDim, p.m.Tensor.Shape, p.m.Tensor.Strides = int32(len(dims)), at(dims), at(strides)
}

func (p *producer) call(fn, self uintptr) {
	if fn != producersDeleter || self != uintptr(unsafe.Pointer(p.m)) {
		p.t.Errorf("deleter: got a call of %#x with %#x, want %#x with %p", fn, self, producersDeleter, p.m)
	}
	p.deleted++
}

func (p *producer) wantDeleted(n int) {
	p.t.Helper()
	if p.deleted != n {
		p.t.Errorf("deleter: got %d calls, want %d", p.deleted, n)
	}
}

func (p *producer) imported(opts ...ImportOption) *tensor.Tensor {
	p.t.Helper()
	x, err := Import(p.m, p.call, opts...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.wantDeleted(0)
	return x
}

func release(t testing.TB, x *tensor.Tensor) {
	t.Helper()
	if err := x.Release(); err != nil {
		t.Error(err)
	}
}

func wantValues(t testing.TB, x *tensor.Tensor, want ...float32) {
	t.Helper()
	got, err := tensor.Values[float32](x)
	if err != nil {
		t.Error(err)
		return
	}
	if len(got) != len(want) {
		t.Errorf("values: got %v, want %v", got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("values: got %v, want %v", got, want)
			return
		}
	}
}

func TestImport(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		name    string
		dims    []int64
		strides []int64
		offset  int // in elements, by data and by byte_offset in turn
		minor   uint32
		want    []float32
	}{
		{"contiguous", []int64{2, 3}, []int64{3, 1}, 0, 3, []float32{0, 1, 2, 3, 4, 5}},
		{"null strides", []int64{2, 3}, nil, 0, 1, []float32{0, 1, 2, 3, 4, 5}},
		{"transposed", []int64{3, 2}, []int64{1, 3}, 0, 3, []float32{0, 3, 1, 4, 2, 5}},
		{"offset", []int64{2}, []int64{2}, 1, 3, []float32{1, 3}},
		{"reversed", []int64{6}, []int64{-1}, 5, 3, []float32{5, 4, 3, 2, 1, 0}},
		{"broadcast", []int64{2, 3}, []int64{0, 1}, 3, 3, []float32{3, 4, 5, 3, 4, 5}},
		{"odd strides of size 1", []int64{1, 2, 1}, []int64{math.MinInt64, 1, 1 << 62}, 0, 3, []float32{0, 1}},
		{"empty", []int64{2, 0}, []int64{5, 7}, 0, 3, nil},
		{"rank 0", nil, nil, 4, 3, []float32{4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, byOffset := range []bool{false, true} {
				p := produce(t)
				p.layout(c.dims, c.strides)
				p.m.Version.Minor = c.minor
				if byOffset {
					p.m.Tensor.ByteOffset = uint64(4 * c.offset)
				} else {
					p.m.Tensor.Data += uintptr(4 * c.offset)
				}
				x := p.imported()
				wantValues(t, x, c.want...)
				if data, first := x.UnsafeBytes(); len(c.want) > 0 && uintptr(unsafe.Pointer(&data[first])) != p.address()+uintptr(4*c.offset) {
					t.Errorf("first element: got %p, want %#x", &data[first], p.address()+uintptr(4*c.offset))
				}
				release(t, x)
				p.wantDeleted(1)
			}
		})
	}
}

func TestImportEndsWithTheLastHolder(t *testing.T) {
	memorytest.Check(t)
	p := produce(t)
	x := p.imported()
	v, err := x.Slice(tensor.Range{Start: 1, Stop: 2})
	if err != nil {
		t.Fatal(err)
	}
	release(t, x)
	p.wantDeleted(0)
	wantValues(t, v, 3, 4, 5)
	use, err := v.Use()
	if err != nil {
		t.Fatal(err)
	}
	release(t, v)
	p.wantDeleted(0)
	use.Release()
	p.wantDeleted(1)
}

func TestImportIsNotExclusive(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		name   string
		change func(*producer)
		opts   []ImportOption
		want   string // contained in the reason, "" for exclusive
	}{
		{"plain", func(*producer) {}, nil, "imported"},
		{"copied", func(p *producer) { p.m.Flags = FlagCopied }, nil, "imported"},
		{"assumed", func(*producer) {}, []ImportOption{AssumeExclusive()}, ""},
		{"assumed, read-only", func(p *producer) { p.m.Flags = FlagReadOnly }, []ImportOption{AssumeExclusive()}, "read-only"},
		{"assumed, overlapping", func(p *producer) { p.strides[0] = 0 }, []ImportOption{AssumeExclusive()}, "no two elements share a byte"},
	} {
		p := produce(t)
		c.change(p)
		x := p.imported(c.opts...)
		err := x.WhyNotWritable()
		if x.IsExclusive() != (c.want == "") || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got exclusive %t and %v, want the reason %q", c.name, x.IsExclusive(), err, c.want)
		}
		release(t, x)
		p.wantDeleted(1)
	}
}

func TestImportRefuses(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		name   string
		change func(*producer)
		kind   error
		text   string
	}{
		{"major version", func(p *producer) { p.m.Version = Version{2, 0}; p.m.Tensor.Shape = 1 }, tensor.ErrUnsupported, "got DLPack 2.0, want 1.x"},
		{"major version 0", func(p *producer) { p.m.Version = Version{0, 8} }, tensor.ErrUnsupported, "got DLPack 0.8, want 1.x"},
		{"flags", func(p *producer) { p.m.Flags = 1<<40 | FlagReadOnly }, tensor.ErrUnsupported, "got flags 0x10000000001, want none but 0x7"},
		{"device", func(p *producer) { p.m.Tensor.Device.Type = 5 }, tensor.ErrUnsupported, "got device type 5"},
		{"negative device", func(p *producer) { p.m.Tensor.Device.Type = -1 }, tensor.ErrUnsupported, "got device type -1"},
		{"device cuda", func(p *producer) { p.m.Tensor.Device = Device{CUDA, 3} }, tensor.ErrUnsupported, "got a tensor on cuda 3, want one in host memory"},
		{"device number", func(p *producer) { p.m.Tensor.Device.ID = -2 }, tensor.ErrCorrupt, "got device cpu -2"},
		{"ndim", func(p *producer) { p.m.Tensor.NDim = math.MaxInt32 }, tensor.ErrShape, "got 2147483647 dimensions, want 0 to 64"},
		{"negative ndim", func(p *producer) { p.m.Tensor.NDim = -1 }, tensor.ErrShape, "got -1 dimensions"},
		{"ndim 65", func(p *producer) { p.m.Tensor.NDim = 65 }, tensor.ErrShape, "got 65 dimensions"},
		{"shape", func(p *producer) { p.m.Tensor.Shape = 0 }, tensor.ErrCorrupt, "got shape at address 0x0"},
		{"odd shape", func(p *producer) { p.m.Tensor.Shape++ }, tensor.ErrCorrupt, "want an aligned one"},
		{"last page", func(p *producer) { p.m.Tensor.Shape = math.MaxUint64 - 7 }, tensor.ErrCorrupt, "got shape at address 0xfffffffffffffff8"},
		{"negative dimension", func(p *producer) { p.dims[1] = -3 }, tensor.ErrShape, "dimension 1 is -3"},
		{"elements", func(p *producer) { p.dims[0], p.dims[1] = 1<<40, 1<<40 }, tensor.ErrShape, "more than 2^58 elements"},
		{"elements beside a zero", func(p *producer) { p.layout([]int64{1 << 40, 0, 1 << 40}, []int64{0, 0, 0}) }, tensor.ErrShape, "more than 2^58 elements"},
		{"strides", func(p *producer) { p.m.Tensor.Strides = 8 }, tensor.ErrCorrupt, "got strides at address 0x8"},
		{"no strides", func(p *producer) { p.m.Tensor.Strides = 0 }, tensor.ErrCorrupt, "got NULL strides for 2 dimensions"},
		{"no strides in 1.2", func(p *producer) { p.m.Tensor.Strides, p.m.Version.Minor = 0, 2 }, tensor.ErrCorrupt, "got NULL strides"},
		{"reach of strides", func(p *producer) { p.strides[0] = math.MinInt64 }, tensor.ErrShape, "past 2^58 elements"},
		{"lanes", func(p *producer) { p.m.Tensor.DType.Lanes = 4 }, tensor.ErrUnsupported, "got elements of 4 lanes"},
		{"no lanes", func(p *producer) { p.m.Tensor.DType.Lanes = 0 }, tensor.ErrUnsupported, "got elements of 0 lanes"},
		{"type code", func(p *producer) { p.m.Tensor.DType.Code = 19 }, tensor.ErrDType, "got code 19"},
		{"bits", func(p *producer) { p.m.Tensor.DType.Bits = 31 }, tensor.ErrDType, "with 31 bits"},
		{"f4 in 8 bits", func(p *producer) { p.m.Tensor.DType = DataType{Float4E2M1FN, 8, 1} }, tensor.ErrDType, "code 17 with 8 bits"},
		{"padded", func(p *producer) { p.m.Tensor.DType = DataType{Float4E2M1FN, 4, 1}; p.m.Flags = FlagSubBytePadded }, tensor.ErrUnsupported, "want it packed"},
		{"packed with gaps", func(p *producer) { p.m.Tensor.DType = DataType{Int, 4, 1}; p.strides[0] = 4 }, tensor.ErrLayout, "its elements are packed"},
		{"data", func(p *producer) { p.m.Tensor.Data = 0 }, tensor.ErrCorrupt, "got data at address 0x0"},
		{"data in the first page", func(p *producer) { p.m.Tensor.Data = 64; p.m.Tensor.ByteOffset = 1 << 32 }, tensor.ErrCorrupt, "got data at address 0x40"},
		{"odd data", func(p *producer) { p.m.Tensor.Data += 2 }, tensor.ErrLayout, "want a multiple of 4"},
		{"odd offset", func(p *producer) { p.m.Tensor.ByteOffset = 3 }, tensor.ErrLayout, "want a multiple of 4"},
		{"negative offset", func(p *producer) { p.m.Tensor.ByteOffset = math.MaxUint64 - 3 }, tensor.ErrCorrupt, "got byte offset -4"},
		{"offset over the end", func(p *producer) { p.m.Tensor.Data, p.m.Tensor.ByteOffset = math.MaxUint64-3, 1<<40 }, tensor.ErrCorrupt, "within the address space"},
		{"bytes over the end", func(p *producer) { p.m.Tensor.Data = math.MaxInt64 - 15 }, tensor.ErrCorrupt, "within the address space"},
		{"bytes before the start", func(p *producer) { p.strides[0] = -1 << 57 }, tensor.ErrCorrupt, "within the address space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := produce(t)
			c.change(p)
			x, err := Import(p.m, p.call)
			if err == nil {
				t.Fatalf("got %v, want an error with %q", x, c.text)
			}
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "dlpack import: ") {
				t.Errorf("got %q, want one of kind %q with %q", err, c.kind, c.text)
			}
			p.wantDeleted(1)
		})
	}
}

// TestImportCannotDelete: without a deleter, or a way to call it, there is
// nothing to call.
func TestImportCannotDelete(t *testing.T) {
	memorytest.Check(t)
	p := produce(t)
	if _, err := Import(p.m, nil); !errors.Is(err, tensor.ErrUnsupported) {
		t.Errorf("no caller: got %v, want ErrUnsupported", err)
	}
	p.m.Deleter = 0
	if _, err := Import(p.m, p.call); !errors.Is(err, tensor.ErrCorrupt) || !strings.Contains(err.Error(), "NULL deleter") {
		t.Errorf("NULL deleter: got %v, want ErrCorrupt", err)
	}
	if _, err := Import(nil, p.call); !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("NULL struct: got %v, want ErrCorrupt", err)
	}
	if _, err := ImportLegacy(nil, p.call); !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("NULL legacy struct: got %v, want ErrCorrupt", err)
	}
	if _, err := ImportLegacy(&DLManagedTensor{Tensor: p.m.Tensor}, p.call); !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("NULL deleter of a legacy struct: got %v, want ErrCorrupt", err)
	}
	p.wantDeleted(0)
}

func TestImportLegacy(t *testing.T) {
	memorytest.Check(t)
	p := produce(t)
	deleted := 0
	m := &DLManagedTensor{Tensor: p.m.Tensor, Deleter: producersDeleter}
	call := func(fn, self uintptr) {
		if fn == producersDeleter && self == uintptr(unsafe.Pointer(m)) {
			deleted++
		}
	}
	m.Tensor.Strides = 0
	x, err := ImportLegacy(m, call)
	if err != nil {
		t.Fatal(err)
	}
	wantValues(t, x, 0, 1, 2, 3, 4, 5)
	if x.IsExclusive() {
		t.Error("a legacy import is exclusive, want it imported")
	}
	release(t, x)
	m.Tensor.NDim = -1
	if _, err := ImportLegacy(m, call); !errors.Is(err, tensor.ErrShape) {
		t.Errorf("-1 dimensions: got %v, want ErrShape", err)
	}
	if deleted != 2 {
		t.Errorf("deleter: got %d calls, want 2", deleted)
	}
}

// TestImportTypes takes every element type once, in its alignment and, where it
// has one, out of it.
func TestImportTypes(t *testing.T) {
	memorytest.Check(t)
	for d := dtype.Invalid + 1; d.IsValid(); d++ {
		code, bits, lanes, ok := d.DLPack()
		if !ok {
			continue
		}
		p := produce(t)
		p.m.Tensor.DType = DataType{TypeCode(code), bits, lanes}
		x := p.imported()
		want, _ := d.ByteLen(6)
		if x.DType() != d || x.NumBytes() != want {
			t.Errorf("%s: got %s in %d bytes, want %d bytes", d, x.DType(), x.NumBytes(), want)
		}
		release(t, x)
		p.wantDeleted(1)
		p.m.Tensor.Data++
		x, err := Import(p.m, p.call)
		if (alignment(d) > 1) != errors.Is(err, tensor.ErrLayout) {
			t.Errorf("%s at an odd address: got %v, want an error if its alignment of %d is more than 1", d, err, alignment(d))
		}
		if err == nil {
			release(t, x)
		}
		p.wantDeleted(2)
	}
}

// A forgotten option changes nothing, and a forgotten Caller leaves a foreign
// struct as it is.
func TestForgottenValues(t *testing.T) {
	memorytest.Check(t)
	p := produce(t)
	x, err := Import(p.m, p.call, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.m.Delete(nil)
	(&DLManagedTensor{Deleter: producersDeleter}).Delete(nil)
	p.wantDeleted(0)
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
	p.wantDeleted(1)
}
