package contrib

import (
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// activations are those that nodes end with, by their names in ONNX, with
// their parameters in the order of a list, and what these are where they are
// absent.
var activations = map[string][]op.Attr{
	"Relu": nil, "Tanh": nil, "Sigmoid": nil, "Softplus": nil, "Softsign": nil, "HardSwish": nil,
	"LeakyRelu":       {{Name: "alpha", Value: 0.01}},
	"Elu":             {{Name: "alpha", Value: 1.0}},
	"ThresholdedRelu": {{Name: "alpha", Value: 1.0}},
	"Selu":            {{Name: "alpha", Value: 1.67326319217681884765625}, {Name: "gamma", Value: 1.05070102214813232421875}},
	"HardSigmoid":     {{Name: "alpha", Value: 0.2}, {Name: "beta", Value: 0.5}},
}

// activateByList applies the activation that an attribute names, with its
// parameters in a list.
func activateByList(n *lift.Node, x *ir.Value) *ir.Value {
	name := lift.TakeOr(n, "activation", "")
	list := lift.TakeOr(n, "activation_params", []float32(nil))
	if name == "Clip" && len(list) == 2 && x != nil {
		dt := x.Type.DType
		return n.Call("clip", []*ir.Value{x, n.Scalar(dt, float64(list[0])), n.Scalar(dt, float64(list[1]))})
	}
	if len(list) > len(activations[name]) {
		n.Unsupported("activation %q with %d parameters", name, len(list))
	}
	return activate(n, x, name, func(i int, _ string) (float32, bool) {
		if i < len(list) {
			return list[i], true
		}
		return 0, false
	})
}

// activateByName applies the activation that an attribute names, with each
// parameter in an attribute of its own. One of another activation does not
// count.
func activateByName(n *lift.Node, x *ir.Value) *ir.Value {
	y := activate(n, x, lift.TakeOr(n, "activation", ""), func(_ int, name string) (float32, bool) {
		return lift.Take[float32](n, "activation_"+name)
	})
	n.Ignore("activation_alpha", "activation_beta", "activation_gamma")
	return y
}

// activate applies an activation, none if the name is empty.
func activate(n *lift.Node, x *ir.Value, name string, parameter func(i int, name string) (float32, bool)) *ir.Value {
	params, known := activations[name]
	def := n.Registry.LookupONNX(name)
	switch {
	case name == "":
		return x
	case !known || def == nil:
		n.Unsupported("activation %q", name)
		return nil
	}
	params = slices.Clone(params)
	for i := range params {
		if v, given := parameter(i, params[i].Name); given {
			params[i].Value = float64(v)
		}
	}
	return n.Call(def.Name, []*ir.Value{x}, params...)
}
