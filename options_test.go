package tenure_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
)

// Numbers that come from a configuration and are too large are errors, and
// nothing was made of them.
func TestOptionsOutOfRange(t *testing.T) {
	m := modeltest.Load(t, digits)
	for want, opt := range map[string]tenure.SessionOption{
		"threads: got 1025, want at most 1024":                         tenure.WithThreads(1025),
		"concurrent runs: got 9223372036854775807, want at most 65536": tenure.WithMaxConcurrent(math.MaxInt),
	} {
		if _, err := m.NewSession(opt); err == nil || err.Error() != "new session: "+want {
			t.Errorf("got %v, want new session: %s", err, want)
		}
		if _, err := m.Plan(context.Background(), tenure.Shapes{"image": {1, 1, 8, 8}}, opt); err == nil || err.Error() != "plan: "+want {
			t.Errorf("got %v, want plan: %s", err, want)
		}
	}
	for _, w := range []tenure.Weights{-1, 3} {
		if _, err := tenure.Load(digits, tenure.WithWeights(w)); err == nil || !strings.Contains(err.Error(), "want Mapped, Read or Compressed") {
			t.Errorf("weights %d: got %v, want an error that lists what there is", w, err)
		}
	}
}

// A model computes on quantised numbers unless it is asked not to.
func TestWithFloatQuantised(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		opts  []tenure.Option
		calls string
		notes int
	}{
		{nil, "qlinear_matmul", 1},
		{[]tenure.Option{tenure.WithFloatQuantised()}, "dequantize_linear matmul quantize_linear", 0},
	} {
		p := must(ir.Parse(`func @f(%x: u8[2,3]) -> (u8[2,4]) {
			weight @s: f32[]
			weight @w: i8[3,4]
			%a = dequantize_linear(%x, @s)
			%b = dequantize_linear(@w, @s)
			%c = matmul(%a, %b)
			%y = quantize_linear(%c, @s)
			return %y
		}`, op.Builtin()))
		m := must(tenure.LoadProgram(p, ir.WeightMap{"s": {0, 0, 0, 63}, "w": make([]byte, 12)}, c.opts...))
		var calls []string
		m.Program().Walk(func(_ *ir.Block, c *ir.Call) { calls = append(calls, c.Op.Name) })
		if got := strings.Join(calls, " "); got != c.calls || len(m.Notes()) != c.notes {
			t.Errorf("got calls %s and notes %q, want %s and %d notes", got, m.Notes(), c.calls, c.notes)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
