package kernels

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
)

// Launch is a call of a kernel. A nil one has nothing to do.
type Launch struct {
	Kernel *Kernel
	Blocks uint32 // of Threads threads
	Args   [][]byte
}

// Operand is the place of a tensor's elements: the address of the first, and
// the strides in bytes, which may be 0 or negative.
type Operand struct {
	Address uint64
	Strides []int64
}

// compact drops dimensions of size 1 and merges those that are one in each
// operand, so that a contiguous tensor has one dimension. It returns the sizes,
// the strides of each operand, and the number of elements.
func compact(op string, size []int64, operands []Operand) (dims []int64, strides [][]int64, n uint64, err error) {
	n = 1
	strides = make([][]int64, len(operands))
	for d := len(size) - 1; d >= 0; d-- {
		if size[d] < 0 {
			return nil, nil, 0, fmt.Errorf("%s: got the size %d, want none below 0", op, size[d])
		}
		n *= uint64(size[d])
	}
	for _, o := range operands {
		if len(o.Strides) != len(size) {
			return nil, nil, 0, fmt.Errorf("%s: got %d strides, want %d", op, len(o.Strides), len(size))
		}
	}
	for d := range size {
		if size[d] == 1 {
			continue
		}
		last := len(dims) - 1
		merge := last >= 0
		for j, o := range operands {
			merge = merge && strides[j][last] == o.Strides[d]*size[d]
		}
		if merge {
			dims[last] *= size[d]
		} else {
			dims = append(dims, size[d])
		}
		for j, o := range operands {
			if merge {
				strides[j][last] = o.Strides[d]
			} else {
				strides[j] = append(strides[j], o.Strides[d])
			}
		}
	}
	if len(dims) == 0 { // kernels have one dimension at least
		dims = []int64{1}
		for j := range operands {
			strides[j] = []int64{0}
		}
	}
	if len(dims) > MaxRank {
		return nil, nil, 0, fmt.Errorf("%s: got a layout of %d dimensions that cannot be merged, want at most %d", op, len(dims), MaxRank)
	}
	return dims, strides, n, nil
}

// layoutBytes are the bytes of the parameter layout.
func layoutBytes(dims []int64, strides [][]int64) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+8*MaxRank*(1+len(strides))), uint64(len(dims)))
	for _, list := range append([][]int64{dims}, strides...) {
		for d := range MaxRank {
			v := uint64(0)
			if d < len(list) {
				v = uint64(list[d])
			}
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

func word(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// stridedLaunch calls a kernel of strided. more are arguments after the
// addresses.
func stridedLaunch(k *Kernel, n uint64, dims []int64, strides [][]int64, operands []Operand, more ...[]byte) *Launch {
	if n == 0 {
		return nil
	}
	args := [][]byte{word(n), layoutBytes(dims, strides)}
	for _, o := range operands {
		args = append(args, word(o.Address))
	}
	return &Launch{k, k.Blocks(n), append(args, more...)}
}

// contiguous reports whether every operand is one piece of elements of size
// bytes, at a multiple of 16.
func contiguous(size int, dims []int64, strides [][]int64, operands []Operand) bool {
	for j, o := range operands {
		if len(dims) != 1 || o.Address%16 != 0 || strides[j][0] != int64(size) && dims[0] != 1 {
			return false
		}
	}
	return true
}

// aligned reports that an address or a stride is no multiple of an element.
func aligned(op string, size int, strides [][]int64, operands []Operand) error {
	for j, o := range operands {
		if o.Address%uint64(size) != 0 {
			return fmt.Errorf("%s: got the address %#x, want a multiple of %d", op, o.Address, size)
		}
		for _, s := range strides[j] {
			if s%int64(size) != 0 {
				return fmt.Errorf("%s: got the stride %d, want a multiple of %d", op, s, size)
			}
		}
	}
	return nil
}

// Fill writes a pattern of 1, 2, 4 or 8 bytes to every element of dst.
func Fill(dst Operand, size []int64, pattern []byte) (*Launch, error) {
	const op = "kernels.Fill"
	k := named(fmt.Sprint("fill_", len(pattern)))
	if k == nil {
		return nil, fmt.Errorf("%s: got a pattern of %d bytes, want 1, 2, 4 or 8", op, len(pattern))
	}
	operands := []Operand{dst}
	dims, strides, n, err := compact(op, size, operands)
	if err == nil {
		err = aligned(op, k.Size, strides, operands)
	}
	if err != nil {
		return nil, err
	}
	var p []byte
	for len(p) < 8 {
		p = append(p, pattern...)
	}
	if n > 0 && contiguous(k.Size, dims, strides, operands) {
		v := named("fill_contiguous")
		n *= uint64(k.Size)
		return &Launch{v, v.Blocks(n), [][]byte{word(n), word(dst.Address), p}}, nil
	}
	return stridedLaunch(k, n, dims, strides, operands, p), nil
}

// Copy copies elements of 1, 2, 4, 8 or 16 bytes. dst and src must not overlap.
func Copy(dst, src Operand, size []int64, element int) (*Launch, error) {
	const op = "kernels.Copy"
	k := named(fmt.Sprint("copy_", element))
	if k == nil {
		return nil, fmt.Errorf("%s: got elements of %d bytes, want 1, 2, 4, 8 or 16", op, element)
	}
	operands := []Operand{dst, src}
	dims, strides, n, err := compact(op, size, operands)
	if err == nil {
		err = aligned(op, k.Size, strides, operands)
	}
	if err != nil {
		return nil, err
	}
	if n > 0 && contiguous(element, dims, strides, operands) {
		v := named("copy_contiguous")
		n *= uint64(element)
		return &Launch{v, v.Blocks(n), [][]byte{word(n), word(dst.Address), word(src.Address)}}, nil
	}
	return stridedLaunch(k, n, dims, strides, operands), nil
}

// Convert converts elements as the operator cast does. dst may be src where
// both types have one size.
func Convert(dst Operand, to dtype.DType, src Operand, from dtype.DType, size []int64) (*Launch, error) {
	const op = "kernels.Convert"
	k := named(convertName(to, from))
	if k == nil {
		return nil, fmt.Errorf("%s: got %s to %s, want two types of %v", op, from, to, convertTypes)
	}
	operands := []Operand{dst, src}
	dims, strides, n, err := compact(op, size, operands)
	if err == nil {
		err = aligned(op, to.Size(), strides[:1], operands[:1])
	}
	if err == nil {
		err = aligned(op, from.Size(), strides[1:], operands[1:])
	}
	if err != nil {
		return nil, err
	}
	return stridedLaunch(k, n, dims, strides, operands), nil
}

// Add adds a and b. A stride of 0 repeats elements. dst may be a or b, with the
// same strides.
func Add(dt dtype.DType, dst, a, b Operand, size []int64) (*Launch, error) {
	const op = "kernels.Add"
	k := named("add_" + dt.String())
	if k == nil {
		return nil, fmt.Errorf("%s: got %s, want one of %v", op, dt, addTypes)
	}
	operands := []Operand{dst, a, b}
	dims, strides, n, err := compact(op, size, operands)
	if err == nil {
		err = aligned(op, k.Size, strides, operands)
	}
	if err != nil {
		return nil, err
	}
	return stridedLaunch(k, n, dims, strides, operands), nil
}
