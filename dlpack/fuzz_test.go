package dlpack

import (
	"encoding/binary"
	"math/big"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/tensor"
)

// fields reads numbers from fuzz data; behind its end all are 0.
type fields struct{ data []byte }

func (f *fields) word() uint64 {
	var b [8]byte
	f.data = f.data[copy(b[:], f.data):]
	return binary.LittleEndian.Uint64(b[:])
}

// small is a number that is often legal: one byte, as it is or as an extreme.
func (f *fields) small() int64 {
	if len(f.data) == 0 {
		return 0
	}
	b := f.data[0]
	f.data = f.data[1:]
	if b < 0xf0 {
		return int64(int8(b))
	}
	return int64(f.word())
}

// address is where a pointer of a struct leads: to words that may be read, or
// where nothing is and nothing must be read.
func (f *fields) address(good uintptr) uintptr {
	switch f.small() {
	case 0, 1, 2, 3:
		return good
	case 4:
		return good + 1
	case 5:
		return uintptr(f.word() % firstPage)
	case 6:
		return ^uintptr(0) - uintptr(f.word()%512)
	}
	return 0
}

// FuzzImport makes structs in which every field may have any value. Whether the
// importer accepts one or not, the deleter must have been called once at the
// end; the bytes of an accepted one must lie where exact arithmetic says.
func FuzzImport(f *testing.F) {
	f.Add([]byte{1, 3, 0, 0, 1, 0, 2, 2, 32, 1, 0, 0, 0, 0, 2, 3, 3, 1})
	f.Add([]byte{1, 1, 0, 0, 1, 0, 2, 2, 32, 1, 0, 7, 0, 4, 2, 3})
	f.Add([]byte{2, 0, 7, 0, 9, 0, 64, 6, 8, 4, 5, 5, 5, 5, 255, 255})
	f.Add([]byte{1, 3, 0, 0, 2, 7, 2, 2, 32, 1, 0, 0, 0, 0, 2, 3, 3, 1}) // on the station
	f.Add([]byte{1, 3, 1, 0, 13, 7, 1, 0, 8, 1, 0, 0, 0, 8, 9, 1})
	s := newStation(f)
	// As with a producer in C: data on the Go heap and some offset would be a
	// Go pointer to a part of that heap where nothing is, and the collector
	// ends a process in which it finds one.
	outside, err := osmem.Map(4096)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { osmem.Unmap(outside) })
	foreign := unsafe.Slice((*uint64)(unsafe.Pointer(&outside[0])), 64)
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &fields{data}
		p := produce(t)
		p.data = foreign
		m := p.m
		m.Version = Version{uint32(in.small()), uint32(in.small())}
		m.Flags = Flags(in.small())
		legacy := in.small()%4 == 3
		m.Tensor.Device = Device{DeviceType(in.small()), int32(in.small())}
		ndim := int32(in.small())
		m.Tensor.DType = DataType{TypeCode(in.small()), uint8(in.small()), uint16(in.small())}
		m.Tensor.Data = in.address(p.address())
		p.dims, p.strides = make([]int64, MaxDims), make([]int64, MaxDims)
		m.Tensor.Strides, m.Tensor.Shape = in.address(at(p.strides)), in.address(at(p.dims))
		m.Tensor.ByteOffset = uint64(in.small())
		for i := range min(MaxDims, max(0, int(ndim))) {
			p.dims[i], p.strides[i] = in.small(), in.small()
		}
		m.Tensor.NDim = ndim

		var x *tensor.Tensor
		var err error
		self := &DLManagedTensor{Tensor: m.Tensor, Deleter: producersDeleter}
		if legacy {
			x, err = ImportLegacy(self, func(fn, at uintptr) {
				if fn != producersDeleter || at != uintptr(unsafe.Pointer(self)) {
					t.Errorf("got a call of %#x with %#x", fn, at)
				}
				p.deleted++
			})
		} else {
			x, err = Import(m, p.call)
		}
		if err != nil {
			p.wantDeleted(1)
			return
		}
		p.wantDeleted(0)
		if got, want := ok(DeviceOf(x))(t), m.Tensor.Device; got != want && !want.Type.onHost() {
			t.Errorf("place: got %v, want %v", got, want)
		}
		p.wantExact(x, s)
		release(t, x)
		p.wantDeleted(1)
	})
}

// wantExact computes with big numbers what x must be.
func (p *producer) wantExact(x *tensor.Tensor, s *station) {
	d := p.m.Tensor
	elements, low, high := big.NewInt(1), new(big.Int), new(big.Int)
	for i := range d.NDim {
		elements.Mul(elements, big.NewInt(p.dims[i]))
	}
	compact := big.NewInt(1)
	for i := d.NDim - 1; i >= 0; i-- {
		stride := new(big.Int).Set(compact)
		if d.Strides != 0 {
			stride.SetInt64(p.strides[i])
		}
		reach := stride.Mul(stride, big.NewInt(p.dims[i]-1))
		if reach.Sign() < 0 {
			low.Add(low, reach)
		} else {
			high.Add(high, reach)
		}
		compact.Mul(compact, big.NewInt(max(p.dims[i], 1)))
	}
	if !elements.IsInt64() || int64(x.NumElements()) != elements.Int64() {
		p.t.Fatalf("elements: got %d, want %s", x.NumElements(), elements)
	}
	data, first := x.UnsafeBytes()
	base, length := uintptr(unsafe.Pointer(unsafe.SliceData(data))), len(data)
	if x.Device() != nil {
		l := s.received[len(s.received)-1]
		base, length, first = l.Address, l.Bytes, int(address(p.t, x)-l.Address)
		s.received = s.received[:0]
	}
	if elements.Sign() == 0 {
		if length != 0 {
			p.t.Errorf("bytes without elements: got %d, want 0", length)
		}
		return
	}
	bits := big.NewInt(int64(d.DType.Bits))
	bytes := func(n *big.Int) *big.Int { // up to whole ones
		n = new(big.Int).Mul(n, bits)
		return n.Rsh(n.Add(n, big.NewInt(7)), 3)
	}
	begin := new(big.Int).Add(new(big.Int).SetUint64(uint64(d.Data)), new(big.Int).SetUint64(d.ByteOffset))
	begin.Sub(begin, bytes(new(big.Int).Neg(low)))
	span := bytes(new(big.Int).Add(new(big.Int).Sub(high, low), big.NewInt(1)))
	got := new(big.Int).SetUint64(uint64(base))
	if got.Cmp(begin) != 0 || int64(length) != span.Int64() || !span.IsInt64() {
		p.t.Errorf("bytes: got %d from %s on, want %s from %s on", length, got, span, begin)
	}
	if at := d.Data + uintptr(d.ByteOffset); at%alignment(x.DType()) != 0 {
		p.t.Errorf("first element: got address %#x for %s, want an aligned one", at, x.DType())
	}
	if int64(first) != bytes(new(big.Int).Neg(low)).Int64() {
		p.t.Errorf("first element: got byte %d, want %s", first, bytes(new(big.Int).Neg(low)))
	}
}
