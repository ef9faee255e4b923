package acceptance_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// drawingModel draws by nodes with and without a seed, twice in the same words,
// and in a loop.
const drawingModel = `
opset 15
input x f32[n]
input p f32[n]
input logits f32[b,c]
init three i64 3
init yes bool 1
init zeros f32[4] 0 0 0 0
graph body
input i i64
input go bool
input last f32[4]
u = RandomUniform() {shape = [4]}
next = Add(last, u)
again = Identity(go)
output again bool
output next f32[4]
output u f32[4]
end
a = RandomNormal() {shape = [5000], mean = 2.0, scale = 3.0}
b1 = RandomNormal() {shape = [5000], mean = 2.0, scale = 3.0}
s = RandomUniform() {shape = [100], seed = 7.0}
like = RandomUniformLike(x) {low = -1.0, high = 3.0}
coin = Bernoulli(p) {dtype = 7}
class = Multinomial(logits) {sample_size = 4000, seed = 1.0}
sum, each = Loop(three, yes, zeros) {body = body}
output a f32[5000]
output b1 f32[5000]
output s f32[100]
output like f32[n]
output coin i64[n]
output class i32[b,4000]
output sum f32[4]
output each f32[3,4]
`

// numbers are the elements of a tensor as floats.
func numbers(t *testing.T, x *tensor.Tensor) []float64 {
	t.Helper()
	var list []float64
	switch x.DType() {
	case dtype.I32:
		for _, v := range modeltest.Must(tensor.Values[int32](x)) {
			list = append(list, float64(v))
		}
	case dtype.I64:
		for _, v := range modeltest.Must(tensor.Values[int64](x)) {
			list = append(list, float64(v))
		}
	default:
		for _, v := range modeltest.Values(t, x) {
			list = append(list, float64(v))
		}
	}
	return list
}

// drawn are the outputs of one run as floats.
func drawn(t *testing.T, s *tenure.Session) map[string][]float64 {
	t.Helper()
	const n = 20000
	p := make([]float32, n)
	for i := range p {
		p[i] = float32(i%4) / 4
	}
	in := tenure.Inputs{}
	for name, x := range map[string]*tensor.Tensor{"x": modeltest.Of(t, p, n), "p": modeltest.Of(t, p, n),
		"logits": modeltest.Of(t, []float32{0, float32(math.Log(3)), -100, 5, 5, 5}, 2, 3)} {
		in[name] = x
	}
	out, err := s.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	got := map[string][]float64{}
	for name, x := range out {
		got[name] = numbers(t, x)
	}
	return got
}

// TestRandomOperators compares what a model draws with its distributions, and
// what sessions draw with each other.
func TestRandomOperators(t *testing.T) {
	memorytest.Check(t)
	m, err := tenure.LoadBytes(wiretest.ModelText(t, drawingModel))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	session := func(opts ...tenure.SessionOption) *tenure.Session {
		s, err := m.NewSession(opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	one, other := session(tenure.WithSeed(5), tenure.WithThreads(1)), session(tenure.WithSeed(5), tenure.WithThreads(4))
	first, second := drawn(t, one), drawn(t, one)
	checkDistributions(t, first)
	same := func(what string, a, b map[string][]float64, want func(name string) bool) {
		t.Helper()
		for name := range a {
			if got := slices.Equal(a[name], b[name]); got != want(name) {
				t.Errorf("%s, output %s: got equal %t, want %t", what, name, got, want(name))
			}
		}
	}
	all, none := func(string) bool { return true }, func(string) bool { return false }
	seeded := func(name string) bool { return name == "s" || name == "class" }
	same("first runs of sessions with one seed", first, drawn(t, other), all)
	same("second runs of them", second, drawn(t, other), all)
	same("two runs of a session", first, second, none)
	same("sessions with two seeds", first, drawn(t, session(tenure.WithSeed(6))), seeded)
	same("sessions without a seed", drawn(t, session()), drawn(t, session()), seeded)
}

// checkDistributions compares means, deviations and counts with those wanted,
// within six deviations of the estimate.
func checkDistributions(t *testing.T, got map[string][]float64) {
	t.Helper()
	moments := func(what string, list []float64, mean, deviation float64) {
		t.Helper()
		sum, squares := 0.0, 0.0
		for _, x := range list {
			sum, squares = sum+x, squares+(x-mean)*(x-mean)
		}
		n := float64(len(list))
		if d := sum/n - mean; math.Abs(d) > 6*deviation/math.Sqrt(n) {
			t.Errorf("%s: got mean %v, want about %v", what, sum/n, mean)
		}
		if d := math.Sqrt(squares/n)/deviation - 1; math.Abs(d) > 6/math.Sqrt(n) {
			t.Errorf("%s: got deviation %v, want about %v", what, math.Sqrt(squares/n), deviation)
		}
	}
	moments("normal", got["a"], 2, 3)
	moments("uniform", got["like"], 1, 4/math.Sqrt(12))
	if lo, hi := slices.Min(got["like"]), slices.Max(got["like"]); lo < -1 || hi > 3 {
		t.Errorf("uniform: got %v to %v, want -1 to 3", lo, hi)
	}
	if slices.Equal(got["a"], got["b1"]) {
		t.Error("two nodes draw the same numbers")
	}
	for k := range 4 {
		var list []float64
		for i := k; i < len(got["coin"]); i += 4 {
			list = append(list, got["coin"][i])
		}
		if p := float64(k) / 4; k > 0 {
			moments(fmt.Sprint("bernoulli ", p), list, p, math.Sqrt(p*(1-p)))
		} else if slices.Max(list) != 0 {
			t.Error("bernoulli 0: got a 1")
		}
	}
	for row, want := range [][]float64{{0.25, 0.75, 0}, {1. / 3, 1. / 3, 1. / 3}} {
		for class, p := range want {
			count := 0.0
			for _, x := range got["class"][4000*row : 4000*(row+1)] {
				if x == float64(class) {
					count++
				}
			}
			if math.Abs(count/4000-p) > 6*math.Sqrt(p*(1-p)/4000) {
				t.Errorf("multinomial, row %d: got class %d %v times of 4000, want a share of %v", row, class, count, p)
			}
		}
	}
	for i, x := range got["sum"] {
		each := got["each"]
		if each[i] == each[4+i] || each[4+i] == each[8+i] || math.Abs(each[i]+each[4+i]+each[8+i]-x) > 1e-6 {
			t.Errorf("loop: got %v in its iterations and the sum %v, want three different numbers and their sum", []float64{each[i], each[4+i], each[8+i]}, x)
		}
	}
}
