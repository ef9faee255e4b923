package onnx

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/shape"
)

// Description is what a model file declares, whether or not it can be
// imported.
type Description struct {
	Producer        string
	ProducerVersion string
	IRVersion       int64
	Opsets          map[string]int64 // by domain; "" is that of ONNX
	Inputs, Outputs []Value          // in the order of the file, without inputs that have an initializer; a type that is not known is zero
	Operators       map[string]int   // "Relu", "domain::Type" to the number of nodes, those in nested graphs and functions included
	Functions       []string         // model-local functions
	Weights         int              // initializers and Constant nodes
	WeightBytes     int64            // what they declare
}

// Describe reads what the model in the file at path declares. It fails only
// on a file that is no model.
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
	m, err := readModel(data)
	if err != nil {
		return nil, err
	}
	d := &Description{Producer: m.producer, ProducerVersion: m.producerVersion, IRVersion: m.irVersion,
		Opsets: map[string]int64{}, Operators: map[string]int{}}
	for _, o := range m.opsets {
		d.Opsets[domainOf(o.domain)] = o.version
	}
	isWeight := map[string]bool{}
	for i := range m.graph.initializers {
		isWeight[m.graph.initializers[i].name] = true
	}
	for i := range m.graph.inputs {
		if v := &m.graph.inputs[i]; !isWeight[v.name] {
			d.Inputs = append(d.Inputs, describeValue(v))
		}
	}
	for i := range m.graph.outputs {
		d.Outputs = append(d.Outputs, describeValue(&m.graph.outputs[i]))
	}
	d.graph(m.graph)
	for i := range m.functions {
		d.Functions = append(d.Functions, m.functions[i].name)
		d.nodes(m.functions[i].nodes)
	}
	return d, nil
}

func describeValue(v *valueProto) Value {
	typ, text, _ := typeOf(v, shape.Unknown) // what cannot be read stays unknown here and is an error of the import
	return Value{v.name, typ, text}
}

func (d *Description) graph(g *graphProto) {
	for i := range g.initializers {
		d.weight(&g.initializers[i])
	}
	d.nodes(g.nodes)
}

func (d *Description) nodes(nodes []nodeProto) {
	for i := range nodes {
		n := &nodes[i]
		d.Operators[operatorName(n)]++
		for j := range n.attrs {
			switch v := n.attrs[j].value.(type) {
			case *graphProto:
				d.graph(v)
			case *tensorProto:
				if n.opType == "Constant" {
					d.weight(v)
				}
			}
		}
	}
}

func (d *Description) weight(t *tensorProto) {
	d.Weights++
	if typ, err := t.typ(); err == nil {
		if n, err := typ.Bytes(); err == nil {
			d.WeightBytes += int64(n)
		}
	}
}
