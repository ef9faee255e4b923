package machine_test

import (
	"reflect"
	"testing"

	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
)

// TestBest compares the choice with the processor's features and TENURE_CPU.
func TestBest(t *testing.T) {
	all := machine.Variants()
	if all[0] != kernel.Portable || all[len(all)-1] != machine.Best() {
		t.Fatalf("got %d variants from %s to %s, best %s, want portable first and the best last", len(all), all[0].Name, all[len(all)-1].Name, machine.Best().Name)
	}
	if want := cpu.Level().String(); machine.Best().Name != want && cpu.Level() != cpu.NEON {
		t.Errorf("got %s, want %s", machine.Best().Name, want)
	}
}

// TestLoopsThatGoTogether looks for loops of which a variant has some without
// the others that kernels use with them.
func TestLoopsThatGoTogether(t *testing.T) {
	for _, v := range machine.Variants() {
		r, e, g, b, c := &v.Rows, &v.Elements, &v.Gemm, &v.Bytes, &v.Conv
		for name, loops := range map[string][]any{
			"powers":         {r.Cube, r.ThreeQuarters, r.BinaryVV[kernel.Mul].Short, r.BinarySV[kernel.Div].Short, r.Min, r.Unary[kernel.Sqrt].Short},
			"softmax":        {r.SoftmaxRow, r.SoftmaxNext, r.SoftmaxNextStream, r.ExpSum, r.ExpOnlySum, r.ExpScale, r.Max, r.BinaryVS[kernel.Mul].Short, r.BinaryVS[kernel.Sub].Short},
			"normalisations": {r.Deviations, r.DeviationsAhead, r.NormScale, r.NormBias, r.NormBiasStream, r.NormNext},
			"streams":        {r.Stream, r.Fence},
			"halves":         {r.WidenF16, r.WidenBF16, r.NarrowF16, r.NarrowBF16},
			"transpositions": {e.TransposeWords, e.TransposeHalves, e.TransposeBytes},
			"products":       {g.Tiles, g.Prefetching, g.Packing},
			"vectors":        {g.Axpy8, g.Axpy1},
			"transposed":     {g.Dot4, g.Dot1},
			"bytes":          {b.Tiles, b.Pack, b.RequantRows, b.Filters, b.Interleave1, b.Interleave2, b.CopyRows, b.EvenRows, b.MaxU8, b.MaxI8, b.Depthwise, b.Quantize, b.DequantizeU8, b.DequantizeI8},
			"quantised":      {b.Add, b.Multiply},
			"picked bytes":   {b.Lookup, b.Taps},
			"narrow panels":  {b.HalfFilters, b.QuarterFilters},
			"convolutions":   {c.Tiles, c.Leave, c.RowTiles, c.Patches, c.Windows, c.Pads},
		} {
			there := 0
			for _, l := range loops {
				if !reflect.ValueOf(l).IsNil() {
					there++
				}
			}
			if there != 0 && there != len(loops) {
				t.Errorf("%s: got %d of the %d loops of %s, want all or none", v.Name, there, len(loops), name)
			}
		}
		for _, l := range []kernel.Row2{r.BinaryVV[kernel.Add], r.BinaryVV[kernel.Max]} {
			if (l.Short == nil) != (l.Long == nil) {
				t.Errorf("%s: got one form of a loop of two operands", v.Name)
			}
		}
		for op, l := range r.Unary {
			if (l.Short == nil) != (l.Long == nil) {
				t.Errorf("%s: %s: got one of the two forms", v.Name, kernel.UnaryOp(op))
			}
		}
	}
}
