package contest

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"

	"github.com/tenure-go/tenure/bench/internal/engine"
)

// decoders turn the first bytes of an element into a number, by its type.
var decoders = map[string]struct {
	size   int
	number func([]byte) float64
}{
	"f32":  {4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	"f64":  {8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }},
	"i64":  {8, func(b []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) }},
	"i32":  {4, func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) }},
	"i8":   {1, func(b []byte) float64 { return float64(int8(b[0])) }},
	"u8":   {1, func(b []byte) float64 { return float64(b[0]) }},
	"bool": {1, func(b []byte) float64 { return float64(b[0]) }},
}

// Compare returns the largest difference of two engines' outputs, and the
// largest number among those of the output where it is. The replies are those
// to a request for outputs.
func Compare(a, b engine.Reply) (difference, largest float64, err error) {
	if len(a.Files) != len(b.Files) || len(a.Files) == 0 {
		return 0, 0, fmt.Errorf("got %d and %d outputs, want as many of both", len(a.Files), len(b.Files))
	}
	if len(a.Types) != len(a.Files) || len(b.Types) != len(b.Files) {
		return 0, 0, fmt.Errorf("got %d and %d types of %d outputs, want one of each", len(a.Types), len(b.Types), len(a.Files))
	}
	for i := range a.Files {
		if a.Types[i] != b.Types[i] {
			return 0, 0, fmt.Errorf("output %d: got %s from Tenure and %s from ONNX Runtime, want one type", i, a.Types[i], b.Types[i])
		}
		x, err := os.ReadFile(a.Files[i])
		if err != nil {
			return 0, 0, err
		}
		y, err := os.ReadFile(b.Files[i])
		if err != nil {
			return 0, 0, err
		}
		d, l, err := apart(a.Types[i], x, y)
		if err != nil {
			return 0, 0, fmt.Errorf("output %d: %w", i, err)
		}
		if d > difference || i == 0 {
			difference, largest = d, l
		}
	}
	return difference, largest, nil
}

func apart(typ string, x, y []byte) (difference, largest float64, err error) {
	if len(x) != len(y) {
		return 0, 0, fmt.Errorf("got %d bytes from Tenure and %d from ONNX Runtime, want as many", len(x), len(y))
	}
	of, ok := decoders[typ]
	if !ok {
		return 0, 0, fmt.Errorf("got type %q, want one whose elements are compared", typ)
	}
	for ; len(x) >= of.size; x, y = x[of.size:], y[of.size:] {
		v, w := of.number(x), of.number(y)
		d := math.Abs(v - w)
		switch {
		case v == w || math.IsNaN(v) && math.IsNaN(w):
			d = 0 // of equal infinities too
		case math.IsNaN(d):
			d = math.Inf(1)
		}
		difference = max(difference, d)
		if a := math.Abs(w); a > largest {
			largest = a
		}
	}
	return difference, largest, nil
}
