package ortdiff_test

import (
	"bytes"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
)

// tolerance says how far results may be apart. The unit of the first two is the
// distance from 1 to the next number of the type.
type tolerance struct {
	rel   float64 // of the larger one of the two
	abs   float64 // of the largest finite number among operands and results, and 1
	steps float64 // of integers
	why   string
}

// epsilon is the distance from 1 to the next number.
func epsilon(dt dtype.DType) float64 {
	switch dt {
	case dtype.F64, dtype.C128:
		return 0x1p-52
	case dtype.F16:
		return 0x1p-10
	case dtype.BF16:
		return 0x1p-7
	case dtype.F8E4M3FN, dtype.F8E4M3FNUZ:
		return 0x1p-3
	case dtype.F8E5M2, dtype.F8E5M2FNUZ:
		return 0x1p-2
	}
	return 0x1p-23
}

// scale is the largest finite size among tensors of floats, at least 1.
func scale(list ...*value) float64 {
	size := 1.0
	for _, v := range list {
		if !v.dt.IsFloat() && !v.dt.IsComplex() {
			continue
		}
		for _, x := range decode(v.dt, v.data) {
			if a := max(math.Abs(x.f), math.Abs(x.imag)); a > size && a < 1e30 {
				size = a
			}
		}
	}
	return size
}

// apart says where got differs from want, "" where it does not.
func (tol tolerance) apart(got, want *value, size float64) string {
	if got == nil {
		return "got no such output"
	}
	if g, w := fmt.Sprint(got.dt, got.dims), fmt.Sprint(want.dt, want.dims); g != w {
		return fmt.Sprintf("got %s, want %s", g, w)
	}
	if bytes.Equal(got.data, want.data) {
		return ""
	}
	if got.dt == dtype.String {
		return fmt.Sprintf("got other strings\ngot  %s\nwant %s", quoted(got.data), quoted(want.data))
	}
	a, b := decode(got.dt, got.data), decode(want.dt, want.data)
	n := elements(want.dims)
	for i := range n {
		if !tol.near(a[i], b[i], size) {
			return fmt.Sprintf("element %d: got %v, want %v\ngot  %s\nwant %s", i, a[i], b[i], format(got.dt, got.data), format(want.dt, want.data))
		}
	}
	return ""
}

func (tol tolerance) near(a, b number, size float64) bool {
	switch {
	case a.dt.IsComplex():
		return tol.close(a.f, b.f, a.dt, size) && tol.close(a.imag, b.imag, a.dt, size)
	case a.dt.IsFloat():
		return tol.close(a.f, b.f, a.dt, size)
	case tol.steps > 0:
		return math.Abs(float64(a.i)-float64(b.i)) <= tol.steps
	}
	return a.i == b.i
}

func (tol tolerance) close(a, b float64, dt dtype.DType, size float64) bool {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return false
	}
	if tol.rel > 0 && (dt == dtype.F32 || dt == dtype.BF16) && math.Abs(a-b) < 0x1p-140 { // few bits are left of numbers that small
		return true
	}
	return math.Abs(a-b) <= epsilon(dt)*(tol.rel*max(math.Abs(a), math.Abs(b))+tol.abs*size)
}
