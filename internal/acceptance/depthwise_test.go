package acceptance_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// separableNetwork is a drawn network of convolutions, some depthwise.
type separableNetwork struct {
	*rand.Rand
	onnxtest.Graph
	elem    int64
	dt      dtype.DType
	open    bool // the sizes of pictures are
	in      [4]int
	others  [][4]int // sizes that run after the first
	values  int
	outputs []string
}

// picture is a value, with its sizes at the first run: what follows must fit
// into it.
type picture struct {
	name                    string
	channels, height, width int
}

// drawSeparable draws a network. Sizes are small and odd ones are frequent.
func drawSeparable(seed uint64) *separableNetwork {
	n := &separableNetwork{Rand: rand.New(rand.NewPCG(61, seed)), elem: onnxtest.F32, dt: dtype.F32}
	if n.IntN(4) == 0 {
		n.elem, n.dt = 10, dtype.F16
	}
	n.open = n.IntN(2) == 0
	n.in = [4]int{1 + n.IntN(2), n.channels(), n.size(), n.size()}
	if n.IntN(12) == 0 { // wider than a tile
		n.in = [4]int{1, min(n.in[1], 9), min(n.in[2], 8), 200 + n.IntN(500)}
	}
	if n.open {
		n.Input("x", n.elem, "n", n.in[1], "h", "w")
		for range 2 {
			n.others = append(n.others, [4]int{1 + n.IntN(2), n.in[1], n.in[2] + n.IntN(6), n.in[3] + n.IntN(20)})
		}
		n.others = append(n.others, n.in)
	} else {
		n.Input("x", n.elem, n.in[0], n.in[1], n.in[2], n.in[3])
	}
	at := picture{"x", n.in[1], n.in[2], n.in[3]}
	for range 1 + n.IntN(2) {
		at = n.block(at)
	}
	n.give(at.name)
	return n
}

func (n *separableNetwork) size() int {
	return [...]int{1, 2, 3, 5, 7, 8, 13, 16, 17, 29, 40}[n.IntN(11)]
}

func (n *separableNetwork) channels() int {
	return [...]int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 70}[n.IntN(14)]
}

func (n *separableNetwork) give(name string) {
	if !slices.Contains(n.outputs, name) {
		n.outputs = append(n.outputs, name)
		n.Output(name)
	}
}

func (n *separableNetwork) next() string {
	n.values++
	return fmt.Sprint("v", n.values)
}

// weight adds numbers of the network's type.
func (n *separableNetwork) weight(low, high float64, dims ...int64) string {
	name, size := n.next(), int64(1)
	for _, d := range dims {
		size *= d
	}
	list := make([]float32, size)
	for i := range list {
		list[i] = float32(low + (high-low)*n.Float64())
	}
	n.Weight(name, n.elem, n.encode(list), dims...)
	return name
}

func (n *separableNetwork) encode(list []float32) (raw []byte) {
	for _, v := range list {
		if n.dt == dtype.F16 {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(dtype.Float16FromFloat32(v)))
		} else {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	}
	return raw
}

// block is a convolution, a depthwise one, and perhaps a projection with a
// residual, with normalisations and activations between them. The first result
// may have another reader.
func (n *separableNetwork) block(x picture) picture {
	wide := n.conv(x, n.channels(), 1, []int{1, 1, 1, 2, 3, 3}[n.IntN(6)])
	wide = n.activation(n.normalisation(wide))
	if n.IntN(8) == 0 {
		n.give(wide.name)
	}
	deep := n.conv(wide, wide.channels, wide.channels, 0)
	deep = n.activation(n.normalisation(deep))
	switch n.IntN(4) {
	case 0:
		return deep
	case 1:
		if deep.height == wide.height && deep.width == wide.width && !n.open {
			return n.sum(deep, wide)
		}
	}
	y := n.conv(deep, x.channels, 1, 1)
	if !n.open && y.height == x.height && y.width == x.width {
		y = n.sum(y, x)
	}
	return y
}

func (n *separableNetwork) sum(a, b picture) picture {
	name := n.next()
	n.Node("Add", []string{a.name, b.name}, []string{name})
	a.name = name
	return a
}

// conv adds a convolution of square kernels of the given size, or of any if it
// is 0. There are pads enough for the picture that it slides over.
func (n *separableNetwork) conv(x picture, outputs, groups, size int) picture {
	kernel, strides, dilations, pads := [2]int{size, size}, [2]int{1, 1}, [2]int{1, 1}, [4]int{}
	if groups > 1 || size == 0 {
		kernel = [2]int{1 + n.IntN(7), 1 + n.IntN(7)}
		if n.IntN(2) == 0 {
			kernel[1] = kernel[0]
		}
		strides = [2]int{1 + n.IntN(3), 1 + n.IntN(3)}
		if n.IntN(4) == 0 {
			dilations = [2]int{1 + n.IntN(2), 1 + n.IntN(2)}
		}
	}
	out := picture{n.next(), outputs, 0, 0}
	for i, in := range []int{x.height, x.width} {
		reach := (kernel[i]-1)*dilations[i] + 1
		pads[i], pads[2+i] = (reach-1)/2, reach/2
		if n.IntN(4) == 0 {
			pads[i], pads[2+i] = n.IntN(reach+2), n.IntN(reach+2)
		}
		pads[i] += max(0, reach-in-pads[i]-pads[2+i])
		n := (in+pads[i]+pads[2+i]-reach)/strides[i] + 1
		if i == 0 {
			out.height = n
		} else {
			out.width = n
		}
	}
	bound := 1 / math.Sqrt(float64(x.channels/groups*kernel[0]*kernel[1]))
	operands := []string{x.name, n.weight(-bound, bound, int64(outputs), int64(x.channels/groups), int64(kernel[0]), int64(kernel[1]))}
	if n.IntN(2) == 0 {
		operands = append(operands, n.weight(-0.5, 0.5, int64(outputs)))
	}
	ints := func(v ...int) (list []int64) {
		for _, x := range v {
			list = append(list, int64(x))
		}
		return list
	}
	n.Node("Conv", operands, []string{out.name}, onnxtest.Int("group", int64(groups)), onnxtest.Ints("kernel_shape", ints(kernel[:]...)...),
		onnxtest.Ints("strides", ints(strides[:]...)...), onnxtest.Ints("dilations", ints(dilations[:]...)...), onnxtest.Ints("pads", ints(pads[:]...)...))
	return out
}

func (n *separableNetwork) normalisation(x picture) picture {
	if n.IntN(3) > 0 {
		return x
	}
	c, in := int64(x.channels), x.name
	x.name = n.next()
	n.Node("BatchNormalization", []string{in, n.weight(0.5, 1.5, c), n.weight(-0.5, 0.5, c), n.weight(-0.2, 0.2, c), n.weight(0.5, 1.5, c)}, []string{x.name})
	return x
}

func (n *separableNetwork) activation(x picture) picture {
	in := x.name
	kind := n.IntN(7)
	if kind < 6 {
		x.name = n.next()
	}
	switch kind {
	case 0, 1:
		n.Node("Relu", []string{in}, []string{x.name})
	case 2:
		n.Node("Clip", []string{in, n.weight(0, 0), n.weight(0.6, 0.6)}, []string{x.name})
	case 3:
		n.Node("HardSwish", []string{in}, []string{x.name})
	case 4:
		gate := n.next()
		n.Node("Sigmoid", []string{in}, []string{gate})
		n.Node("Mul", []string{in, gate}, []string{x.name})
	case 5:
		n.Node("LeakyRelu", []string{in}, []string{x.name}, onnxtest.Float("alpha", 0.25))
	}
	return x
}

// TestSeparableNetworks holds networks of convolutions and depthwise ones to
// what they compute call by call, as they are in the file. On any number of
// threads a run has the same results.
func TestSeparableNetworks(t *testing.T) {
	memorytest.Check(t)
	for seed := range uint64(*separableNetworks) {
		n := drawSeparable(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testSeparable(t, n) })
	}
}

var separableNetworks = flag.Int("separable", 80, "networks of TestSeparableNetworks")

func testSeparable(t *testing.T, n *separableNetwork) {
	file := n.FileOf(17)
	m := modeltest.LoadBytes(t, file)
	direct := modeltest.LoadBytes(t, file, tenure.WithDirectConvolutions())
	one, three := modeltest.Session(t, m, tenure.WithThreads(1)), modeltest.Session(t, m, tenure.WithThreads(3))
	sessions := []*tenure.Session{one, three, modeltest.Session(t, direct, tenure.WithThreads(3))}
	if n.open && n.IntN(4) == 0 {
		sessions = append(sessions, modeltest.Session(t, m, tenure.WithThreads(2), tenure.WithUpTo("n", 2), tenure.WithUpTo("h", n.in[2]+5), tenure.WithUpTo("w", n.in[3]+19)))
	}
	for _, sizes := range append([][4]int{n.in}, n.others...) {
		x := n.tensor(t, sizes)
		want := n.plain(t, file, x)
		var first map[string][]float32
		for i, s := range sessions {
			out := modeltest.Run(t, s, tenure.Inputs{"x": x})
			got := map[string][]float32{}
			for _, name := range n.outputs {
				got[name] = n.floats(t, out[name])
			}
			if err := out.Release(); err != nil {
				t.Fatal(err)
			}
			n.near(t, fmt.Sprintf("%v, session %d", sizes, i), got, want)
			switch i {
			case 0:
				first = got
			case 2: // other roundings
			default:
				for name := range got {
					if !slices.Equal(got[name], first[name]) {
						t.Fatalf("%v, session %d: output %s has other bits than on one thread", sizes, i, name)
					}
				}
			}
		}
		if err := x.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// tensor draws an input.
func (n *separableNetwork) tensor(t *testing.T, sizes [4]int) *tensor.Tensor {
	t.Helper()
	list := make([]float32, sizes[0]*sizes[1]*sizes[2]*sizes[3])
	for i := range list {
		list[i] = float32(n.NormFloat64())
	}
	x, err := tensor.FromBytes(n.dt, modeltest.Must(shape.Of(sizes[:]...)), n.encode(list))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (n *separableNetwork) floats(t *testing.T, x *tensor.Tensor) []float32 {
	t.Helper()
	if n.dt == dtype.F32 {
		return modeltest.Values(t, x)
	}
	var list []float32
	for _, v := range modeltest.Must(tensor.Values[dtype.Float16](x)) {
		list = append(list, v.Float32())
	}
	return list
}

// plain computes the outputs call by call.
func (n *separableNetwork) plain(t *testing.T, model []byte, x *tensor.Tensor) map[string][]float32 {
	t.Helper()
	file, err := onnx.Parse(model, "", onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	use, err := x.Use()
	if err != nil {
		t.Fatal(err)
	}
	defer use.Release()
	in := ir.Interpreter{Eval: compute.Eval, Weights: file.Weights}
	results, err := in.Run(file.Program, op.Arg{Type: op.Type{DType: x.DType(), Shape: x.Shape()}, Data: use.Data})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]float32{}
	for i, name := range n.outputs {
		y, err := tensor.FromBytes(n.dt, results[i].Shape, results[i].Data)
		if err != nil {
			t.Fatal(err)
		}
		want[name] = n.floats(t, y)
		if err := y.Release(); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// near compares all outputs. Results of 16 bits are not rounded where calls are
// joined.
func (n *separableNetwork) near(t *testing.T, what string, got, want map[string][]float32) {
	t.Helper()
	limit := 2e-5
	if n.dt == dtype.F16 {
		limit = 1e-2
	}
	for name, list := range want {
		if len(got[name]) != len(list) {
			t.Fatalf("%s: output %s: got %d elements, want %d", what, name, len(got[name]), len(list))
		}
		for i, v := range list {
			if !(math.Abs(float64(got[name][i]-v)) <= limit*(1+math.Abs(float64(v)))) {
				t.Fatalf("%s: output %s: element %d: got %v, want %v", what, name, i, got[name][i], v)
			}
		}
	}
}
