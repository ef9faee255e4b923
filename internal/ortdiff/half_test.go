package ortdiff_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

var halves = flag.Int("halves", 100, "random networks that run in half precision")

// convert makes the floats of one type in a network those of another one, its
// inputs and outputs too. The scales and regions of a Resize stay.
func (m *model) convert(from, dt dtype.DType) {
	keep := map[string]bool{}
	for _, n := range m.graph.nodes {
		if n.op == "Resize" {
			keep[n.in[1]], keep[n.in[2]] = true, true
		}
	}
	for _, v := range m.values {
		if v.dt != from || keep[v.name] {
			continue
		}
		list := make([]float64, elements(v.dims))
		for i, x := range decode(v.dt, v.data) {
			list[i] = x.f
		}
		v.dt, v.data = dt, encodeFloats(dt, list...)
	}
	for i := range m.graph.outputs {
		m.graph.outputs[i].dt = dt
	}
}

// runOnce runs a model once, borrowing its inputs.
func (m *model) runOnce(t *testing.T) map[string]*value {
	t.Helper()
	loaded, err := tenure.LoadBytes(m.encode())
	if err != nil {
		t.Fatalf("%v\n%s", err, m)
	}
	defer loaded.Close()
	s, err := loaded.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out, err := m.session(s, func(x *tensor.Tensor) tensor.Operand { return x })
	if err != nil {
		t.Fatalf("%v\n%s", err, m)
	}
	return out
}

// TestHalfNetworks runs random networks in half precision and compares them
// with the same ones in single precision, whose numbers are rounded to halves:
// the difference is measured in roundings of the type, relative to all of an
// output. Few are far apart: those of differences of numbers that are nearly
// equal.
func TestHalfNetworks(t *testing.T) {
	memorytest.Check(t)
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		far, count := 0, 0
		for i := range *halves {
			draw := func() *model { return drawNetwork(rand.New(rand.NewPCG(43, uint64(i))), 3+i%10) }
			half, single := draw(), draw()
			half.convert(dtype.F32, dt)
			single.convert(dtype.F32, dt) // rounds
			single.convert(dt, dtype.F32)
			got, want := half.runOnce(t), single.runOnce(t)
			for _, out := range single.graph.outputs {
				g, w := got[out.name], want[out.name]
				if g.dt != dt || elements(g.dims) != elements(w.dims) {
					t.Fatalf("%s: got %s%v, want %s%v", dt, g.dt, g.dims, dt, w.dims)
				}
				apart, size := 0.0, 0.0
				a, b := decode(g.dt, g.data), decode(w.dt, w.data)
				for k := range b {
					apart += (a[k].f - b[k].f) * (a[k].f - b[k].f)
					size += b[k].f * b[k].f
				}
				count++
				if size == 0 {
					continue
				}
				switch by := math.Sqrt(apart/size) / epsilon(dt); {
				case !(by <= 100):
					t.Errorf("%s, network %d, output %s: got %v roundings\n%s", dt, i, out.name, by, half)
				case by > 6:
					far++
				}
			}
		}
		if t.Logf("%s: %d of %d outputs are more than 6 roundings apart", dt, far, count); far > 2+count/100 {
			t.Errorf("%s: got %d of %d outputs more than 6 roundings apart, want one of a hundred", dt, far, count)
		}
	}
}
