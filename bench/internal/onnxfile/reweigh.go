package onnxfile

import (
	"encoding/binary"
	"fmt"
)

// Reweigh reads a model whose weights are made by ConstantOfShape nodes, as
// the light models of the ONNX project are, and gives each of them numbers of
// its own: weights of a layer scaled after He, scales and variances around 1,
// shifts around 0. Everything else is as in the file, except that inputs with
// an initializer are no inputs any more, and that the input of a last Softmax
// is an output too, in front of the others.
func Reweigh(model []byte) (*Graph, error) {
	g := &Graph{}
	var body []byte
	err := each(model, func(f field) error {
		switch f.num {
		case 7:
			body = f.bytes
		case 8:
			return each(f.bytes, func(f field) error {
				if f.num == 2 {
					g.opset = int64(f.number)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	r := &reader{uses: map[string]use{}, initial: map[string]initial{}}
	if err := each(body, r.part); err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	return g, r.build(g)
}

// reader collects the parts of a graph.
type reader struct {
	nodes           []node
	inputs, outputs []declared
	initial         map[string]initial
	uses            map[string]use // the first use of each value
}

type node struct {
	op      string
	in, out []string
	transB  bool
	raw     []byte
}

type declared struct {
	name string
	raw  []byte
}

type initial struct {
	dims []int
	ints []int64
	raw  []byte
}

// use is a node and the place of an operand in it.
type use struct {
	node  *node
	input int
}

func (r *reader) part(f field) error {
	switch f.num {
	case 1:
		n, err := readNode(f.bytes)
		r.nodes = append(r.nodes, n)
		return err
	case 5:
		name, t, err := readTensor(f.bytes)
		r.initial[name] = t
		return err
	case 11:
		name, err := nameOf(f.bytes)
		r.inputs = append(r.inputs, declared{name, f.bytes})
		return err
	case 12:
		name, err := nameOf(f.bytes)
		r.outputs = append(r.outputs, declared{name, f.bytes})
		return err
	}
	return nil
}

func readNode(raw []byte) (node, error) {
	n := node{raw: raw}
	return n, each(raw, func(f field) error {
		switch f.num {
		case 1:
			n.in = append(n.in, string(f.bytes))
		case 2:
			n.out = append(n.out, string(f.bytes))
		case 4:
			n.op = string(f.bytes)
		case 5:
			name, number := "", uint64(0)
			err := each(f.bytes, func(f field) error {
				switch f.num {
				case 1:
					name = string(f.bytes)
				case 3:
					number = f.number
				}
				return nil
			})
			n.transB = n.transB || name == "transB" && number != 0
			return err
		}
		return nil
	})
}

func readTensor(raw []byte) (name string, t initial, err error) {
	t.raw = raw
	err = each(raw, func(f field) error {
		switch f.num {
		case 1:
			dims, err := numbers(f)
			for _, d := range dims {
				t.dims = append(t.dims, int(d))
			}
			return err
		case 7:
			ints, err := numbers(f)
			t.ints = append(t.ints, ints...)
			return err
		case 8:
			name = string(f.bytes)
		case 9:
			for b := f.bytes; len(b) >= 8; b = b[8:] {
				t.ints = append(t.ints, int64(binary.LittleEndian.Uint64(b)))
			}
		}
		return nil
	})
	return name, t, err
}

// numbers reads a repeated field of numbers, packed or one by one.
func numbers(f field) ([]int64, error) {
	if f.bytes == nil {
		return []int64{int64(f.number)}, nil
	}
	var list []int64
	for b := f.bytes; len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("field %d: got no varint, want one", f.num)
		}
		list, b = append(list, int64(v)), b[n:]
	}
	return list, nil
}

func nameOf(raw []byte) (name string, err error) {
	err = each(raw, func(f field) error {
		if f.num == 1 {
			name = string(f.bytes)
		}
		return nil
	})
	return name, err
}

// build writes the parts into a graph.
func (r *reader) build(g *Graph) error {
	for i := range r.nodes {
		n := &r.nodes[i]
		for k, name := range n.in {
			if _, ok := r.uses[name]; !ok && n.op != "ConstantOfShape" {
				r.uses[name] = use{n, k}
			}
		}
	}
	var last *node
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.op == "ConstantOfShape" {
			if err := r.weigh(g, n); err != nil {
				return err
			}
			continue
		}
		g.nodes = g.nodes.bytes(1, n.raw)
		for _, name := range n.in {
			if t, ok := r.initial[name]; ok && t.raw != nil {
				g.constants = g.constants.bytes(5, t.raw)
				r.initial[name] = initial{} // written once
			}
		}
		last = n
	}
	for _, in := range r.inputs {
		if _, ok := r.initial[in.name]; ok {
			continue
		}
		input, err := readInput(in)
		if err != nil {
			return err
		}
		g.Input(input.Name, input.Elem, input.Dims...)
	}
	if last != nil && last.op == "Softmax" {
		g.Output(last.in[0], F32)
	}
	for _, out := range r.outputs {
		g.outputs = g.outputs.bytes(12, out.raw)
		g.results = append(g.results, out.name)
	}
	return nil
}

// readInput reads a declared input, whose sizes must be fixed.
func readInput(d declared) (Input, error) {
	in := Input{Name: d.name}
	dim := func(f field) error {
		if f.num == 1 {
			size := 0
			if err := each(f.bytes, func(f field) error {
				if f.num == 1 {
					size = int(f.number)
				}
				return nil
			}); err != nil {
				return err
			}
			if size < 1 {
				return fmt.Errorf("input %s: got an open dimension, want a size", d.name)
			}
			in.Dims = append(in.Dims, size)
		}
		return nil
	}
	tensor := func(f field) error {
		switch f.num {
		case 1:
			in.Elem = Elem(f.number)
		case 2:
			return each(f.bytes, dim)
		}
		return nil
	}
	return in, each(d.raw, func(f field) error {
		if f.num != 2 {
			return nil
		}
		return each(f.bytes, func(f field) error {
			if f.num != 1 {
				return nil
			}
			return each(f.bytes, tensor)
		})
	})
}

// weigh turns a ConstantOfShape node into a weight.
func (r *reader) weigh(g *Graph, n *node) error {
	name := n.out[0]
	t, ok := r.initial[n.in[0]]
	if !ok {
		return fmt.Errorf("%s: got a shape that is computed, want an initializer", name)
	}
	dims := make([]int, len(t.ints))
	for i, d := range t.ints {
		dims[i] = int(d)
	}
	u, ok := r.uses[name]
	if !ok {
		return nil // nothing reads it
	}
	for u.input == 0 && (u.node.op == "Unsqueeze" || u.node.op == "Reshape") {
		if u, ok = r.uses[u.node.out[0]]; !ok {
			return fmt.Errorf("weight %s: got a reshaped weight that nothing reads, want a layer", name)
		}
	}
	source, err := u.distribution(Seed(name), dims)
	if err != nil {
		return fmt.Errorf("weight %s: %w", name, err)
	}
	g.Weight(name, source, dims...)
	return nil
}

// distribution chooses numbers that keep a network's values in range.
func (u use) distribution(seed uint64, dims []int) (func() Source, error) {
	around0, around1 := Uniform(seed, 0.1), Between(seed, 0.8, 1.2)
	switch op := u.node.op; {
	case op == "Conv" && u.input == 1:
		fanIn := 1
		for _, d := range dims[1:] {
			fanIn *= d
		}
		return He(seed, fanIn), nil
	case (op == "Gemm" || op == "MatMul") && u.input == 1 && len(dims) >= 2:
		if u.node.transB {
			return He(seed, dims[len(dims)-1]), nil
		}
		return He(seed, dims[len(dims)-2]), nil
	case op == "BatchNormalization" && (u.input == 1 || u.input == 4), op == "Mul":
		return around1, nil
	case op == "BatchNormalization", op == "Conv" && u.input == 2, op == "Gemm" && u.input == 2, op == "Add", op == "Sum":
		return around0, nil
	}
	return nil, fmt.Errorf("got operand %d of %s, want one whose distribution is known", u.input, u.node.op)
}
