package ortdiff_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// The sizes of the encoder.
const encoderHeads, encoderSize, encoderWidth, encoderWords = 2, 8, 16, 30

// encoder is an encoder under way, with attention, norms and activations spelt
// out as exporters of older opsets do.
type encoder struct{ *decoder }

// one adds a node of ONNX with one output.
func (e *encoder) one(op, out string, in []string, attrs ...attr) string {
	return e.put("", op, in, []string{out}, attrs...)
}

func (e *encoder) number(f float64) string {
	return e.value(dtype.F32, []int{}, encodeFloats(dtype.F32, f), true).name
}

func (e *encoder) norm(x, name string) string {
	last := attr{"axes", []int64{-1}}
	centred := e.one("Sub", name+" centred", []string{x, e.one("ReduceMean", name+" mean", []string{x}, last)})
	variance := e.one("ReduceMean", name+" variance", []string{e.one("Pow", name+" squares", []string{centred, e.number(2)})}, last)
	root := e.one("Sqrt", name+" root", []string{e.one("Add", name+" more", []string{variance, e.number(1e-12)})})
	y := e.one("Mul", name+" scaled", []string{e.one("Div", name+" unit", []string{centred, root}), e.weight(1, encoderWidth)})
	return e.one("Add", name, []string{y, e.weight(1, encoderWidth)})
}

func (e *encoder) dense(x, name string, in, out int) string {
	return e.one("Add", name, []string{e.one("MatMul", name+" product", []string{x, e.weight(0.3, in, out)}), e.weight(0.3, out)})
}

func (e *encoder) head(x, name string, perm ...int64) string {
	apart := e.list([]int{4}, 0, 0, encoderHeads, encoderSize)
	y := e.one("Reshape", name+" heads", []string{e.dense(x, name+" dense", encoderWidth, encoderWidth), apart})
	return e.one("Transpose", name, []string{y}, attr{"perm", perm})
}

func (e *encoder) layer(x, mask, name string) string {
	q, k, v := e.head(x, name+" q", 0, 2, 1, 3), e.head(x, name+" k", 0, 2, 3, 1), e.head(x, name+" v", 0, 2, 1, 3)
	scores := e.one("Div", name+" scores", []string{e.one("MatMul", name+" qk", []string{q, k}), e.number(2.8284271)})
	weights := e.one("Softmax", name+" weights", []string{e.one("Add", name+" masked", []string{scores, mask})}, attr{"axis", int64(3)})
	y := e.one("Transpose", name+" turned", []string{e.one("MatMul", name+" attended", []string{weights, v})}, attr{"perm", []int64{0, 2, 1, 3}})
	y = e.one("Reshape", name+" joined", []string{y, e.list([]int{3}, 0, 0, encoderWidth)})
	y = e.one("Add", name+" residual", []string{e.dense(y, name+" out", encoderWidth, encoderWidth), x})
	return e.norm(y, name+" norm")
}

// drawEncoder makes the model. Its inputs have symbols for sizes and no bytes.
func drawEncoder(r *rand.Rand) *model {
	e := &encoder{&decoder{&drawer{Rand: r, m: &model{opset: 12}}}}
	e.input("ids", dtype.I64, batchSize, sequenceLength)
	e.input("mask", dtype.I64, batchSize, sequenceLength)
	x := e.norm(e.one("Gather", "words", []string{e.weight(1, encoderWords, encoderWidth), "ids"}), "embedding")
	mask := e.one("Unsqueeze", "mask 3", []string{"mask"}, attr{"axes", []int64{1}})
	mask = e.one("Unsqueeze", "mask 4", []string{mask}, attr{"axes", []int64{2}})
	mask = e.one("Cast", "mask of floats", []string{mask}, attr{"to", int64(dtype.F32.ONNX())})
	mask = e.one("Mul", "bias", []string{e.one("Sub", "left out", []string{e.number(1), mask}), e.number(-10000)})
	for i := range 2 {
		x = e.layer(x, mask, fmt.Sprint("layer ", i))
	}
	e.m.graph.outputs = []typed{{name: x}}
	return e.m
}

// TestOptimised reads an encoder as ONNX Runtime's optimiser writes it, with
// operators of its own, and runs samples of which one has no key that counts.
func TestOptimised(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	r := rand.New(rand.NewPCG(5, 3))
	file := drawEncoder(r).encode()
	optimise := exec.Command(ref.python, filepath.Join("testdata", "optimise.py"))
	optimise.Stdin = bytes.NewReader(file)
	optimised, err := optimise.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"Attention", "LayerNormalization", contribDomain} {
		if !bytes.Contains(optimised, []byte(op)) {
			t.Fatalf("got an optimised model without %s", op)
		}
	}
	m, err := tenure.LoadBytes(optimised)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const batch, time = 3, 5
	ids := make([]int64, batch*time)
	for i := range ids {
		ids[i] = int64(r.IntN(encoderWords))
	}
	flags := slices.Concat([]int64{1, 1, 1, 1, 1}, []int64{1, 1, 0, 0, 0}, []int64{0, 0, 0, 0, 0})
	in := []*value{
		{name: "ids", dt: dtype.I64, dims: []int{batch, time}, data: encodeInts(dtype.I64, ids...)},
		{name: "mask", dt: dtype.I64, dims: []int{batch, time}, data: encodeInts(dtype.I64, flags...)},
	}
	want, err := ref.run(file, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&model{values: in}).session(s, func(x *tensor.Tensor) tensor.Operand { return x })
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range want {
		if diff := (tolerance{64, 64, 0, ""}).apart(got[name], w, scale(w)); diff != "" {
			t.Errorf("%s: %.2000s", name, diff)
		}
	}
}
