package onnx

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/shape"
)

// Description lists the declarations of a model file, whether or not it can
// be imported.
type Description struct {
	Producer        string
	ProducerVersion string
	IRVersion       int64
	Opsets          map[string]int64 // by domain; "" is that of ONNX
	Inputs, Outputs []Value          // in the order of the file, without inputs that have an initializer; a type that is not known is zero
	Operators       map[string]int   // "Relu", "domain::Type" to the number of nodes, those in nested graphs and functions included
	Functions       []string         // model-local functions
	Weights         int              // initializers and Constant nodes
	WeightBytes     int64            // by their declared types and shapes
}

// Describe reads the declarations of the model in the file at path. It fails
// only on a file that is no model.
func Describe(path string) (*Description, error) {
	files := weights.New(weights.Options{})
	data, err := files.MapFile(path)
	if err != nil {
		return nil, fmt.Errorf("onnx: describe: %w", err)
	}
	d, err := describe(data)
	if err != nil {
		err = fmt.Errorf("onnx: %s: %w", path, err)
	}
	return d, errors.Join(err, files.Close())
}

// DescribeBytes is Describe for a model in memory.
func DescribeBytes(data []byte) (*Description, error) {
	d, err := describe(data)
	if err != nil {
		err = fmt.Errorf("onnx: %w", err)
	}
	return d, err
}

func describe(data []byte) (*Description, error) {
	m, err := wire.Decode(data)
	if err != nil {
		return nil, err
	}
	d := &Description{Producer: m.Producer, ProducerVersion: m.ProducerVersion, IRVersion: m.IRVersion,
		Opsets: map[string]int64{}, Operators: map[string]int{}}
	for _, o := range m.Opsets {
		d.Opsets[lift.DomainOf(o.Domain)] = o.Version
	}
	isWeight := map[string]bool{}
	for i := range m.Graph.Initializers {
		isWeight[m.Graph.Initializers[i].Name] = true
	}
	for i := range m.Graph.Inputs {
		if v := &m.Graph.Inputs[i]; !isWeight[v.Name] {
			d.Inputs = append(d.Inputs, describeValue(v))
		}
	}
	for i := range m.Graph.Outputs {
		d.Outputs = append(d.Outputs, describeValue(&m.Graph.Outputs[i]))
	}
	d.graph(m.Graph)
	for i := range m.Functions {
		d.Functions = append(d.Functions, m.Functions[i].Name)
		d.nodes(m.Functions[i].Nodes)
	}
	return d, nil
}

func describeValue(v *wire.Value) Value {
	typ, text, _ := lift.TypeOf(v, shape.Unknown) // what cannot be read stays unknown here and is an error of the import
	of, _ := lift.CompositeOf(v)                  // nil for a tensor too
	return Value{Name: v.Name, Type: typ, Text: text, Of: of}
}

func (d *Description) graph(g *wire.Graph) {
	for i := range g.Initializers {
		d.weight(&g.Initializers[i])
	}
	for i := range g.Sparse {
		d.weight(&wire.Tensor{Dims: g.Sparse[i].Dims, DataType: g.Sparse[i].Values.DataType})
	}
	d.nodes(g.Nodes)
}

func (d *Description) nodes(nodes []wire.Node) {
	for i := range nodes {
		n := &nodes[i]
		d.Operators[lift.OperatorName(n)]++
		for j := range n.Attrs {
			switch v := n.Attrs[j].Value.(type) {
			case *wire.Graph:
				d.graph(v)
			case *wire.Tensor:
				if n.OpType == "Constant" {
					d.weight(v)
				}
			}
		}
	}
}

func (d *Description) weight(t *wire.Tensor) {
	d.Weights++
	if typ, err := t.Type(); err == nil {
		if n, err := typ.Bytes(); err == nil {
			d.WeightBytes += int64(n)
		}
	}
}
