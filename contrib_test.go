package tenure_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
)

// TestMatMulNBits multiplies by weights of 4 bits: the lower half of a byte
// comes first, and 8 stands for 0.
func TestMatMulNBits(t *testing.T) {
	var g graph
	g.input("x", f32Type, "n", 4)
	g.weight("w", 2, []byte{0x98, 0xba, 0x77, 0x08}, 2, 2, 1) // rows 0 1 | 2 3 and -1 -1 | 0 -8
	g.floats("scales", 1, 10, 2, 0.5)
	w := wire(nil)
	for _, in := range []string{"x", "w", "scales"} {
		w = w.text(1, in)
	}
	w = w.text(2, "y").text(3, "product").text(4, "MatMulNBits").text(7, "com.microsoft")
	for name, v := range map[string]int64{"K": 4, "N": 2, "bits": 4, "block_size": 2} {
		w = w.bytes(5, attrInt(name, v))
	}
	g.nodes = g.nodes.bytes(1, w)
	g.output("y")
	file := wire(g.file()).bytes(8, wire(nil).text(1, "com.microsoft").varint(2, 1))
	out := run(t, sessionOf(t, file), tenure.Inputs{"x": of(t, []float32{1, 2, 3, 4, 0, 0, 0, 1}, 2, 4)})
	y := values(t, out["y"])
	// Row 0 is 0, 1, 20, 30; row 1 is -2, -2, 0, -4.
	if want := []float32{2 + 60 + 120, -2 - 4 - 16, 30, -4}; !slices.Equal(y, want) {
		t.Errorf("got %v, want %v", y, want)
	}
}
