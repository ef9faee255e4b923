package op

import (
	"fmt"
	"slices"
	"strings"
)

// Registry is an immutable set of operators, looked up by name. Registries are
// values that are passed to the code that loads or builds a program; none is
// global to the process.
type Registry struct {
	byName map[string]*Def
	byONNX map[string]*Def
}

// Builtin returns the operators of Tenure.
func Builtin() *Registry { return builtin }

var builtin = func() *Registry {
	r, err := (&Registry{}).With(slices.Concat(families...)...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return r
}()

// With returns a registry with the operators of r and the given ones. It
// fails when a definition is incomplete or a name is taken.
func (r *Registry) With(defs ...*Def) (*Registry, error) {
	out := &Registry{byName: map[string]*Def{}, byONNX: map[string]*Def{}}
	for _, d := range r.byName {
		out.put(d)
	}
	for _, d := range defs {
		if d == nil || d.Name == "" {
			return nil, fmt.Errorf("registry: an operator has no name")
		}
		if d.Infer == nil {
			return nil, fmt.Errorf("registry: operator %q has no shape rule", d.Name)
		}
		if out.byName[d.Name] != nil {
			return nil, fmt.Errorf("registry: operator %q is declared twice", d.Name)
		}
		if other := out.byONNX[d.ONNX]; other != nil && d.ONNX != "" {
			return nil, fmt.Errorf("registry: operators %q and %q both import ONNX %q", other.Name, d.Name, d.ONNX)
		}
		out.put(d)
	}
	return out, nil
}

func (r *Registry) put(d *Def) {
	r.byName[d.Name] = d
	if d.ONNX != "" {
		r.byONNX[d.ONNX] = d
	}
}

// Lookup returns the operator of that name, nil when there is none.
func (r *Registry) Lookup(name string) *Def { return r.byName[name] }

// LookupONNX returns the operator that imports the given ONNX operator
// ("Relu", "acme::MyOp"), nil when there is none.
func (r *Registry) LookupONNX(name string) *Def { return r.byONNX[name] }

// Defs returns all operators, sorted by name.
func (r *Registry) Defs() []*Def {
	defs := make([]*Def, 0, len(r.byName))
	for _, d := range r.byName {
		defs = append(defs, d)
	}
	slices.SortFunc(defs, func(a, b *Def) int { return strings.Compare(a.Name, b.Name) })
	return defs
}
