package ortdiff_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/tensor"
)

// opened is a model of a file whose inputs have open dimensions, for runs at
// many sizes from one load.
type opened struct {
	name  string
	file  []byte
	m     *model // the nodes of the file, and a first set of values of its inputs
	tol   tolerance
	ref   *reference
	tally tally
	own   *tenure.Model // Tenure's, loaded once
}

// errNoTensors is the error of models with inputs or outputs other than
// tensors.
var errNoTensors = errors.New("an input or output is no tensor")

// opening says which dimensions of the inputs become open.
type opening int

const (
	everyDimension opening = iota
	butLists               // the lengths of lists of integers stay: a rank may depend on them
	firstInput             // the others keep their sizes
	firstAxis              // of every input that is no list
	openings
)

// openFile returns the file of a model with open dimensions in place of the
// sizes that it declares for inputs, and without the declared shapes of other
// values.
func openFile(file []byte, which opening) ([]byte, *wire.Model, error) {
	m, err := wire.Decode(file)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range slices.Concat(m.Graph.Inputs, m.Graph.Outputs) {
		if v.Type.Kind != "tensor" {
			return nil, nil, errNoTensors
		}
	}
	return rewritten(file, func(num int, graph []byte) []byte {
		if num != 7 {
			return graph
		}
		inputs, outputs := m.Graph.Inputs, m.Graph.Outputs
		return rewritten(graph, func(num int, body []byte) []byte {
			switch num {
			case 11:
				v, others := inputs[0], len(inputs) < len(m.Graph.Inputs)
				inputs = inputs[1:]
				if isInitialised(m.Graph, v.Name) || which == firstInput && others {
					return body
				}
				return openDeclaration(v, which)
			case 12:
				v := outputs[0]
				outputs = outputs[1:]
				return typed{name: v.Name, dt: elementType(v)}.encode()
			case 13:
				return nil
			}
			return body
		})
	}), m, nil
}

// isInitialised reports whether an input of the graph has a value in the file.
func isInitialised(g *wire.Graph, name string) bool {
	return slices.ContainsFunc(g.Initializers, func(t wire.Tensor) bool { return t.Name == name })
}

// openDeclaration encodes the declaration of an input with open dimensions.
func openDeclaration(v wire.Value, which opening) []byte {
	out := typed{name: v.Name, dt: elementType(v)}
	if !v.Type.HasShape {
		return out.encode()
	}
	out.dims = []int{}
	list := which != everyDimension && len(v.Type.Dims) == 1 && out.dt.IsInt()
	for axis, d := range v.Type.Dims {
		size := -1
		if d.Sized && (list || which == firstAxis && axis > 0) {
			size = int(d.Size)
		}
		out.dims = append(out.dims, size)
	}
	return out.encode()
}

func elementType(v wire.Value) dtype.DType {
	dt, err := dtype.FromONNX(v.Type.ElemType)
	if err != nil {
		return dtype.Invalid
	}
	return dt
}

// rewritten returns a protobuf message in which replace has replaced the bytes
// of every field that has bytes; nil leaves the field out.
func rewritten(message []byte, replace func(num int, body []byte) []byte) (out onnxtest.Message) {
	for len(message) > 0 {
		key, used := binary.Uvarint(message)
		rest := message[used:]
		size := 0
		switch key & 7 {
		case 0:
			_, size = binary.Uvarint(rest)
		case 1:
			size = 8
		case 5:
			size = 4
		case 2:
			n, head := binary.Uvarint(rest)
			size = head + int(n)
			if body := replace(int(key>>3), rest[head:size]); body != nil {
				out = out.Bytes(int(key>>3), body)
			}
			message = rest[size:]
			continue
		}
		out = append(out, message[:used+size]...)
		message = rest[size:]
	}
	return out
}

// modelOf returns the model with its nodes, as departures look at them, and the
// given values of the inputs.
func modelOf(m *wire.Model, values []*value) (*model, error) {
	out := &model{graph: graphOf(m.Graph), values: values}
	for _, o := range m.Opsets {
		if o.Domain == "" || o.Domain == "ai.onnx" {
			out.opset = int(o.Version)
		}
	}
	for i := range m.Graph.Initializers {
		t := &m.Graph.Initializers[i]
		v, err := constantOf(t)
		if err != nil {
			return nil, fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		out.values = append(out.values, v)
	}
	return out, nil
}

func constantOf(t *wire.Tensor) (*value, error) {
	d, err := t.Check()
	if err != nil {
		return nil, err
	}
	data, err := t.Elements(d)
	if err != nil {
		return nil, err
	}
	v := &value{name: t.Name, dt: d.Type.DType, dims: d.Type.Shape.Sizes(), data: data, constant: true}
	if d.Text {
		last := len(v.dims) - 1
		list := []string{}
		for row := range slices.Chunk(data, max(1, v.dims[last])) {
			list = append(list, strings.TrimRight(string(row), "\x00"))
		}
		if v.dims[last] == 0 {
			list = make([]string, elements(v.dims[:last]))
		}
		v.dt, v.dims, v.data = dtype.String, v.dims[:last], encodeStrings(list)
	}
	return v, nil
}

func graphOf(g *wire.Graph) (out graph) {
	for _, n := range g.Nodes {
		x := &node{op: n.OpType, domain: n.Domain, in: n.Inputs, out: n.Outputs}
		for _, a := range n.Attrs {
			v := a.Value
			if nested, ok := v.(*wire.Graph); ok {
				inner := graphOf(nested)
				v = &inner
			}
			x.attrs = append(x.attrs, attr{a.Name, v})
		}
		out.nodes = append(out.nodes, x)
	}
	for _, o := range g.Outputs {
		out.outputs = append(out.outputs, typed{name: o.Name})
	}
	return out
}

// operators returns the operators of a graph and of those nested in it, once
// for each node.
func (g *graph) operators() (names []string) {
	for _, n := range g.nodes {
		name := n.op
		if n.domain != "" && n.domain != "ai.onnx" {
			name = n.domain + "::" + n.op
		}
		names = append(names, name)
		for _, a := range n.attrs {
			if nested, ok := a.value.(*graph); ok {
				names = append(names, nested.operators()...)
			}
		}
	}
	return names
}

// toleranceOf returns how far results of the nodes may be apart: that of the
// operator for one node, and the sum of all for several, of which each passes
// on the roundings of those before.
func toleranceOf(g *graph) (tol tolerance) {
	names := g.operators()
	for _, name := range names {
		t := tolerances[name]
		tol.rel, tol.abs, tol.steps = tol.rel+t.rel, tol.abs+t.abs, max(tol.steps, t.steps)
	}
	if len(names) > 1 {
		tol.rel, tol.abs = max(2*tol.rel, 8), max(2*tol.abs, 8)
	}
	return tol
}

// valueOfFile reads a TensorProto as the value of an input.
func valueOfFile(in *wire.Value, data []byte) (*value, error) {
	x, _, err := onnx.ReadTensor(data)
	if err != nil {
		return nil, err
	}
	defer x.Release()
	return valueOf(in.Name, x, elementType(*in) == dtype.String), nil
}

// mostElements is the number of elements that a resized value has at most, or
// twice those that it had.
const mostElements = 1 << 15

// resized returns values of other sizes than these, or nil where it finds none:
// each size changes wherever it stands, also in short lists of integers, which
// say shapes; with apart, perhaps at one place alone.
func resized(r *rand.Rand, base []*value, apart bool) []*value {
	var sizes []int
	for _, v := range base {
		for _, n := range v.dims {
			if !slices.Contains(sizes, n) {
				sizes = append(sizes, n)
			}
		}
	}
	if len(sizes) == 0 { // numbers alone: some of them may say sizes
		for _, v := range base {
			if isList(v) {
				sizes = append(sizes, int(decode(v.dt, v.data)[0].i))
			}
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	became := map[int]int{}
	if r.IntN(2) == 0 {
		n := sizes[r.IntN(len(sizes))]
		became[n] = otherSize(r, n)
	} else {
		for _, n := range sizes {
			if n != 1 || r.IntN(4) == 0 {
				became[n] = otherSize(r, n)
			}
		}
	}
	lists := r.IntN(3) > 0
	still := r.IntN(2) == 0 // lengths of short lists stay: they say ranks
	at, axis := -1, 0       // the one position that changes
	if apart && r.IntN(2) == 0 {
		if at = r.IntN(len(base)); len(base[at].dims) == 0 {
			return nil
		}
		axis = r.IntN(len(base[at].dims))
	}
	out := make([]*value, len(base))
	for i, v := range base {
		dims := slices.Clone(v.dims)
		for k, n := range dims {
			if still && len(dims) == 1 && (n == 1 || isList(v)) {
				continue
			}
			if to, ok := became[n]; ok && (at < 0 || at == i && axis == k) {
				dims[k] = to
			}
		}
		if n, from := elements(dims), elements(v.dims); n > max(mostElements, 2*from) || n > 0 && from == 0 || isList(v) && n > mostListed && len(base) > 1 {
			return nil
		}
		out[i] = v.at(r, dims)
		if lists && isList(v) {
			out[i].substitute(became)
		}
	}
	if mayBeLarge(out) {
		return nil
	}
	return out
}

// mayBeLarge reports whether a list that repeats, expands or fills could make
// outputs of more elements than a test should take. The target of a reshape has
// as many elements as its operand.
func mayBeLarge(values []*value) bool {
	most := 1
	for _, v := range values {
		most = max(most, elements(v.dims))
	}
	for _, v := range values {
		if !isList(v) || len(v.dims) == 0 {
			continue
		}
		product := 1
		for _, x := range decode(v.dt, v.data) {
			product = min(product*int(min(max(x.i, 1), 1<<20)), 1<<30)
		}
		reshapes := slices.ContainsFunc(values, func(v *value) bool { return elements(v.dims) == product })
		if !reshapes && product*most > 1<<22 {
			return true
		}
	}
	return false
}

// otherSize draws a size in place of n.
func otherSize(r *rand.Rand, n int) int {
	list := []int{n + 1, n + 2, n + 3, 2 * n, 3 * n, 4 * n, n * n, max(n-1, 1), max(n/2, 1), 1, 2, 7, 13, 17, 33, 65}
	return list[r.IntN(len(list))]
}

// mostListed is the length up to which a list of integers may say a shape.
const mostListed = 8

// isList reports whether a value is a list of integers that may say a shape, or
// one such number.
func isList(v *value) bool {
	return (v.dt == dtype.I64 || v.dt == dtype.I32) && len(v.dims) <= 1 && elements(v.dims) <= mostListed
}

// substitute replaces sizes in a list of integers.
func (v *value) substitute(became map[int]int) {
	var list []int64
	for _, x := range decode(v.dt, v.data) {
		n := x.i
		if to, ok := became[int(n)]; ok && n > 0 {
			n = int64(to)
		}
		list = append(list, n)
	}
	v.data = encodeInts(v.dt, list...)
}

// at returns a value of other sizes, whose elements are some of v's: those of
// the same place where there are, modulo the sizes, or any.
func (v *value) at(r *rand.Rand, dims []int) *value {
	out := &value{name: v.name, dt: v.dt, dims: dims, data: []byte{}}
	n, from := elements(dims), elements(v.dims)
	places := make([]int, n)
	anywhere := !isList(v) && r.IntN(2) == 0
	for i := range places {
		if anywhere {
			places[i] = r.IntN(from)
			continue
		}
		rest, stride := i, 1
		for k := len(dims) - 1; k >= 0; k-- {
			places[i] += rest % dims[k] % v.dims[k] * stride
			rest /= dims[k]
			stride *= v.dims[k]
		}
	}
	switch size := v.dt.Size(); {
	case v.dt == dtype.String:
		texts, list := decodeStrings(v.data), []string{}
		for _, p := range places {
			list = append(list, texts[p])
		}
		out.data = encodeStrings(list)
	case size == 0:
		length, _ := v.dt.ByteLen(n)
		out.data = make([]byte, length)
		for i, p := range places {
			v.dt.PackedPut(out.data, i, v.dt.PackedAt(v.data, p))
		}
	default:
		for _, p := range places {
			out.data = append(out.data, v.data[p*size:][:size]...)
		}
	}
	return out
}

// sizesOf are the sizes of all values as text, and the numbers of lists.
func sizesOf(values []*value) string {
	var list []string
	for _, v := range values {
		switch {
		case v.constant:
		case isList(v):
			list = append(list, fmt.Sprint(v.name, v.dims, "=", decode(v.dt, v.data)))
		default:
			list = append(list, fmt.Sprint(v.name, v.dims))
		}
	}
	return fmt.Sprint(list)
}

// with returns the model with these values in place of those of its inputs.
func (m *model) with(values []*value) *model {
	out := *m
	out.values = slices.Clone(values)
	for _, v := range m.values {
		if v.constant {
			out.values = append(out.values, v)
		}
	}
	return &out
}

// inputs returns the values that are not constants.
func (m *model) inputs() (list []*value) {
	for _, v := range m.values {
		if !v.constant {
			list = append(list, v)
		}
	}
	return list
}

// once runs a model of Tenure with the values of m.
func (m *model) once(s *tenure.Session, give bool) (out map[string]*value, err error) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
			err = &broken{text[:min(len(text), 3000)]}
		}
	}()
	return m.session(s, func(t *tensor.Tensor) tensor.Operand {
		if give {
			return t.Reuse()
		}
		return t
	})
}

// alone runs a model that is loaded for these sizes only.
func (m *model) alone(file []byte) (map[string]*value, error) {
	loaded, err := tenure.LoadBytes(file)
	if err != nil {
		return nil, err
	}
	defer loaded.Close()
	s, err := loaded.NewSession(tenure.WithThreads(2))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return m.once(s, false)
}
