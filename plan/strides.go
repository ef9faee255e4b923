package plan

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Extent returns how many bytes of its space v spans, from its first to behind
// its last: Size where v is contiguous, more where it has strides, with bytes
// of other values between its own. It is for values of a valid plan.
func (v *Value) Extent() int64 {
	if v.Strides == nil {
		return v.Size
	}
	dims, elements := v.dims()
	if elements < 1 || len(dims) != len(v.Strides) {
		return v.Size
	}
	span := int64(1)
	for d, dim := range dims {
		span += (dim - 1) * v.Strides[d]
	}
	return span * (v.Size / elements)
}

// dims returns the sizes of the axes of v's type, as in "f32[2,3]", and their
// product: 0 where the type is not one of known sizes, or has no elements.
func (v *Value) dims() (dims []int64, elements int64) {
	_, text, _ := strings.Cut(v.Type, "[")
	text, ok := strings.CutSuffix(text, "]")
	if !ok {
		return nil, 0
	}
	elements = 1
	for _, size := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 1 || n > MaxBytes/elements {
			return nil, 0
		}
		elements *= n
		dims = append(dims, n)
	}
	return dims, elements
}

// checkStrides reports strides that v may not have: rows that overlap or are
// not in the order of the axes, those of a contiguous value, or of elements
// that are not whole bytes.
func (v *Value) checkStrides() error {
	dims, elements := v.dims()
	if elements < 1 || v.Size < elements || v.Size%elements != 0 {
		return fmt.Errorf("got %d bytes of type %q, want strides only of elements of whole bytes, in a known number", v.Size, v.Type)
	}
	if len(dims) != len(v.Strides) {
		return fmt.Errorf("got %d, want one for each of the %d axes", len(v.Strides), len(dims))
	}
	if v.Space == SpaceConstant {
		return fmt.Errorf("got %v for a constant, want none", v.Strides)
	}
	// The elements of the inner axes, and those that they span.
	inner, span, contiguous := int64(1), int64(1), true
	most := (MaxBytes - v.Offset) / (v.Size / elements)
	for d := len(dims) - 1; d >= 0; d-- {
		dim, stride := dims[d], v.Strides[d]
		least := span
		if dim == 1 {
			least = 1
		}
		high, more := bits.Mul64(uint64(dim-1), uint64(stride))
		if stride < least || stride > MaxBytes || high > 0 || more > uint64(max(most-span, 0)) {
			return fmt.Errorf("axis %d: got %d elements from one to the next, want at least %d, and the last of them within %d bytes", d, stride, least, int64(MaxBytes))
		}
		contiguous = contiguous && (dim == 1 || stride == inner)
		inner *= dim
		span += int64(more)
	}
	if contiguous {
		return fmt.Errorf("got %v, want none for a contiguous value", v.Strides)
	}
	return nil
}
