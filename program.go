package tenure

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
)

// LoadProgram makes a model of a program that was built with [ir.NewBuilder] or
// read by [ir.Parse], with operators of the caller where it has them. The
// model's inputs are the program's parameters, its outputs the program's
// results. The program is not changed. The bytes of table, which may be nil for
// a program without weights, must stay unchanged while the model is open. A
// program that writes values is made pure by [ir.Functionalize] first. One that
// this or [ir.Verify] refuses, or a weight without bytes, is an error.
func LoadProgram(p *ir.Program, table ir.Weights, opts ...Option) (*Model, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("load: got no program, want one")
	}
	pure, err := ir.Functionalize(p, ir.Known(table))
	if err == nil {
		err = ir.Verify(pure)
	}
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	reading := o.reading()
	p = pure.Clone()
	if o.outputs != nil {
		if err := chooseResults(p, o.outputs); err != nil {
			return nil, fmt.Errorf("load: %w", loadError(err))
		}
	}
	m := &onnx.Model{Program: p, Weights: weights.New(weights.Options{Share: reading.Share, Progress: reading.Progress})}
	for _, v := range p.Weights {
		if err := addWeight(m.Weights, v, table); err != nil {
			return nil, errors.Join(fmt.Errorf("load: weight %q: %w", v.Name, err), m.Close())
		}
	}
	m.Inputs, m.Outputs = declarationsOf(p.Body.Params), declarationsOf(p.Body.Results)
	return newModel(m, o)
}

// chooseResults makes the values of the given names the results of a program.
func chooseResults(p *ir.Program, names []string) error {
	values := map[string]*ir.Value{}
	for _, v := range slices.Concat(p.Body.Params, p.Weights) {
		values[v.Name] = v
	}
	for _, c := range p.Body.Calls {
		for _, v := range c.Results {
			if v != nil {
				values[v.Name] = v
			}
		}
	}
	if err := onnx.CheckChosen(names, maps.Keys(values)); err != nil {
		return err
	}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for i := range c.Args {
			c.Args[i].Donate = false // an operand that was read last may be a result now
		}
	})
	p.Body.Results = nil
	for _, name := range names {
		p.Body.Results = append(p.Body.Results, values[name])
	}
	return nil
}

func addWeight(store *weights.Store, v *ir.Value, table ir.Weights) error {
	var data []byte
	ok := table != nil
	if ok {
		data, ok = table.Bytes(v)
	}
	if !ok {
		return errors.New("got no bytes, want those of " + v.Type.String())
	}
	if want, err := v.Type.Bytes(); err != nil || len(data) != want {
		return fmt.Errorf("got %d bytes, want %d of %s: %w", len(data), want, v.Type, errors.Join(ErrShape, err))
	}
	return store.AddInFile(v.Name, v.Type, data)
}

// declarationsOf describes parameters or results as a file would.
func declarationsOf(values []*ir.Value) []onnx.Value {
	list := make([]onnx.Value, len(values))
	for i, v := range values {
		list[i] = onnx.Value{Name: v.Name, Type: v.Type}
	}
	return list
}

// Passes returns the names of the passes that [Model.Specialise] runs, each
// once, in the order in which they first run.
func Passes() []string {
	var names []string
	for _, p := range pass.Specialise {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}
