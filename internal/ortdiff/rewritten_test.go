package ortdiff_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
)

var (
	networks     = flag.Int("networks", 60, "random networks that ONNX Runtime rewrites")
	firstNetwork = flag.Int("network", 0, "number of the first one")
	rewriting    = flag.String("rewriting", "", "rewrite all networks, or models of operators, in this way")
)

// optimisations and quantisations are the ways in which networks are rewritten.
var (
	optimisations  = []string{"basic", "extended", "all"}
	quantisations  = []string{"dynamic", "dynamic-u8-channels", "qdq", "qdq-channels", "qdq-s8", "qoperator", "qoperator-channels"}
	rewrittenAgain = []string{"dynamic", "qdq", "qdq-channels", "qdq-s8", "qoperator"} // and then optimised
	converted      = []string{"half", "bnb4"}
	convertedMore  = []string{"fused", "bits2", "bits4", "bits8", "fused half", "fused dynamic", "fused bits4 extended"} // with more packages
)

// rewriter is ONNX Runtime in three processes: one rewrites models, one runs
// them as they are, and one runs them after its optimiser.
type rewriter struct{ rewrites, runs, optimises *reference }

// TestRewritten compares random networks as ONNX Runtime's optimiser and
// quantiser write them.
func TestRewritten(t *testing.T) {
	memorytest.Check(t)
	py := python(t, "onnxruntime")
	o := rewriter{&reference{python: py, script: "rewrite.py"}, &reference{python: py}, &reference{python: py, args: []string{"optimised"}}}
	defer o.rewrites.stop()
	defer o.runs.stop()
	defer o.optimises.stop()
	ways := slices.Clone(optimisations)
	if err := exec.Command(py, "-c", "import onnxruntime.quantization").Run(); err == nil {
		ways = append(ways, quantisations...)
		for _, way := range rewrittenAgain {
			ways = append(ways, way+" extended", "basic "+way)
		}
		ways = append(ways, converted...)
		if err := exec.Command(py, "-c", "import sympy, onnx_ir").Run(); err == nil {
			ways = append(ways, convertedMore...)
		} else {
			t.Logf("without the optimiser for language models and weights of a few bits, which need the packages sympy and onnx_ir: %v", err)
		}
	} else {
		t.Logf("without quantisers, which need the package onnx: %v", err)
	}
	if *rewriting != "" {
		ways = []string{*rewriting}
	}
	counts, faults := tally{}, map[string]bool{}
	for i := *firstNetwork; i < *firstNetwork+*networks; i++ {
		r := rand.New(rand.NewPCG(41, uint64(i)))
		m := drawNetwork(r, 3+r.IntN(12))
		way := ways[i%len(ways)]
		outcome, fault := o.compare(m, way)
		counts[outcome]++
		if kind := way + kindOf(fault); fault != "" && !faults[kind] {
			faults[kind] = true
			t.Errorf("%s (-network %d -networks 1 -rewriting %q): %.3000s", way, i, way, fault)
		}
	}
	t.Log(counts)
	if counts["agree"] < *networks/2 {
		t.Errorf("got %d of %d networks that both run, want more", counts["agree"], *networks)
	}
}

// compare rewrites a network in one way and compares the results. The fault is
// "" where they agree or cannot be compared.
func (o rewriter) compare(m *model, way string) (outcome, fault string) {
	how := &value{name: "how", dt: dtype.String, dims: []int{}, data: encodeStrings([]string{way})}
	answer, err := o.rewrites.run(m.encode(), append([]*value{how}, m.values...))
	if err != nil {
		return "ONNX Runtime does not rewrite it: " + firstWords(err), ""
	}
	file := answer["model"].data
	want, err := o.runs.run(file, m.values)
	if err != nil {
		return "ONNX Runtime does not run it: " + firstWords(err), ""
	}
	got, err := m.run(file, rewrittenTolerance)
	var bad *broken
	switch {
	case err != nil && way == "all" && strings.Contains(err.Error(), "com.microsoft.nchwc"):
		return "written for one processor", ""
	case errors.As(err, &bad):
		return "broken", bad.text + "\n" + m.String()
	case err != nil:
		return "refused", "refused: " + err.Error()
	}
	exact := slices.Contains(optimisations, way) || way == "fused"
	for _, out := range m.graph.outputs {
		if a := apartBy(got[out.name], want[out.name], exact); a.text != "" {
			switch {
			case exact:
			case bytes.Contains(file, []byte("DynamicQuantizeLSTM")):
				return "states of an LSTM are not quantised", ""
			case o.wavers(m, file, want, a.most):
				return "ONNX Runtime's own results are as far apart", ""
			case !o.finite(m, file):
				return "a value on the way is NaN or infinite, which is left open", ""
			}
			return "fault", fmt.Sprintf("output %s: %s\n%s", out.name, a.text, m)
		}
	}
	return "agree", ""
}

// finite reports whether all values of a quantised network are numbers.
func (o rewriter) finite(m *model, file []byte) bool {
	how := &value{name: "how", dt: dtype.String, dims: []int{}, data: encodeStrings([]string{"finite"})}
	answer, err := o.rewrites.run(file, append([]*value{how}, m.values...))
	return err != nil || answer["finite"].data[0] == 1
}

// wavers reports whether ONNX Runtime's own results of a quantised network
// differ by a fourth of so much: after its optimiser, or after small changes of
// the inputs. Then an element lies next to a tie, and much follows from it.
func (o rewriter) wavers(m *model, file []byte, want map[string]*value, most float64) bool {
	differs := func(got map[string]*value, err error) bool {
		for name, w := range want {
			if err == nil && 4*apartBy(got[name], w, false).most >= most {
				return true
			}
		}
		return false
	}
	if differs(o.optimises.run(file, m.values)) {
		return true
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		inputs := nudged(r, m.values, func(dt dtype.DType) float64 {
			if dt == dtype.F32 {
				return 0x1p-20
			}
			return 0
		})
		if differs(o.runs.run(file, inputs)) {
			return true
		}
	}
	return false
}

// nudged returns the values with the elements of inputs changed at random, by
// about so much in relation to each; by is 0 for types that stay.
func nudged(r *rand.Rand, values []*value, by func(dtype.DType) float64) []*value {
	inputs := slices.Clone(values)
	for i, v := range inputs {
		size := by(v.dt)
		if v.constant || size == 0 {
			continue
		}
		list := make([]float64, elements(v.dims))
		for j, x := range decode(v.dt, v.data) {
			list[j] = x.f * (1 + size*r.NormFloat64())
		}
		moved := *v
		moved.data = encodeFloats(v.dt, list...)
		inputs[i] = &moved
	}
	return inputs
}

// rewrittenTolerance is how far Tenure's own ways of running a network may be
// apart: one of them may decide a tie of a quantisation otherwise.
var rewrittenTolerance = tolerance{1 << 20, 1 << 20, 1, "a quantisation decides ties"}

// firstWords is the beginning of an error without what differs from model to
// model.
func firstWords(err error) string {
	text := kindOf(err.Error())
	return text[:min(len(text), 50)]
}

// apartness is how far results are apart: at most, and in words if that is too
// far.
type apartness struct {
	most float64
	text string
}

// apartBy compares results. Floats of a network that is not quantised are sums
// in another order. In a quantised one an element next to a tie may go to
// either side, after which all that follows from it is a step away: few
// elements, by a small part of the range.
func apartBy(got, want *value, exact bool) apartness {
	if exact {
		return apartness{0, tolerance{4096, 1024, 0, ""}.apart(got, want, scale(want))}
	}
	if got == nil || got.dt != want.dt || !slices.Equal(got.dims, want.dims) {
		return apartness{math.Inf(1), fmt.Sprintf("got %v, want %v", got, want)}
	}
	if got.dt == dtype.String {
		return apartness{0, tolerance{}.apart(got, want, 1)}
	}
	a, b := decode(got.dt, got.data), decode(want.dt, want.data)
	size, sum, most := 0.0, 0.0, 0.0
	for i := range b {
		size = max(size, math.Abs(b[i].f))
		if math.IsNaN(a[i].f) != math.IsNaN(b[i].f) {
			return apartness{math.Inf(1), fmt.Sprintf("element %d: got %v, want %v", i, a[i].f, b[i].f)}
		}
		if d := math.Abs(a[i].f - b[i].f); d > 0 {
			sum, most = sum+d, max(most, d)
		}
	}
	mean := sum / float64(max(len(b), 1))
	if most > 1e-6 && (most > 0.1*size || mean > 0.02*size) {
		return apartness{most, fmt.Sprintf("got a difference of %g, %g in the mean, of numbers up to %g\ngot  %s\nwant %s", most, mean, size, format(got.dt, got.data), format(want.dt, want.data))}
	}
	return apartness{most, ""}
}
