package optest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// checkFails runs a case that the operator must refuse.
func checkFails(def *op.Def, c Case) error {
	s, err := signature(def, c)
	if err == nil {
		_, err = run{poison: 0xa5}.do(s, c)
	}
	if err == nil || !strings.Contains(err.Error(), c.Fails) {
		return fmt.Errorf("got error %v, want one with %q", err, c.Fails)
	}
	return nil
}

// checkWant compares the results with those that the case wants.
func checkWant(s *op.Sig, c Case, got [][]byte) error {
	if len(c.Want) > len(got) {
		return fmt.Errorf("got %d results, want %d", len(got), len(c.Want))
	}
	var errs []error
	for i, want := range c.Want {
		if s.Def.Bound == nil && s.Results[i] != want.Type {
			errs = append(errs, fmt.Errorf("result %d: got %s, want %s", i, s.Results[i], want.Type))
			continue
		}
		if len(got[i]) != len(want.Data) {
			errs = append(errs, fmt.Errorf("result %d: got %d bytes, want %d of %s", i, len(got[i]), len(want.Data), want.Type))
			continue
		}
		if err := compareElements(want.DType, got[i], want.Data, c.Within); err != nil {
			errs = append(errs, fmt.Errorf("result %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// compareElements returns an error that names the first element that is too far
// from the one that is wanted.
func compareElements(dt dtype.DType, got, want []byte, within float64) error {
	if !dt.IsFloat() || dt.Size() < 2 || within == 0 {
		if at := firstDifference(got, want); at >= 0 {
			return fmt.Errorf("got byte %#x at %d, want %#x", got[at], at, want[at])
		}
		return nil
	}
	for i := 0; i < len(want); i += dt.Size() {
		g, w := number(dt, got[i:]), number(dt, want[i:])
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if !(math.Abs(g-w) <= within*max(1, math.Abs(w))) || math.IsInf(w, 0) {
			return fmt.Errorf("element %d: got %v, want %v within %v", i/dt.Size(), g, w, within)
		}
	}
	return nil
}

// number reads an element of a floating-point type.
func number(dt dtype.DType, b []byte) float64 {
	switch dt {
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(b)).Float32())
	case dtype.BF16:
		return float64(dtype.BFloat16(binary.LittleEndian.Uint16(b)).Float32())
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
