package op

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/shape"
)

// recurrentOps run a cell over a sequence x [length, batch, input], or
// [batch, length, input] with layout 1. Operands: x, w, r, bias, lengths,
// initial h; results: h at each step, the last h.
var recurrentOps = []*Def{
	recurrentDef("rnn", "RNN", "runs h = f(w x + r h + bias) over a sequence; returns every h and the last one", 1, 6, 2),
	recurrentDef("gru", "GRU", "runs a gated recurrent unit over a sequence; returns every h and the last one", 3, 6, 2, intAttr("linear_before_reset", 0)),
	recurrentDef("lstm", "LSTM", "runs a long short-term memory over a sequence; returns every h, the last h and the last c; operands also initial c and peepholes", 4, 8, 3,
		intAttr("input_forget", 0)),
}

func recurrentDef(name, onnx, doc string, gates, args, results int, attrs ...AttrDef) *Def {
	// A sample's first state is read before its steps, and its last one written
	// after them.
	states := []Rule{{Arg: 5, Result: 1, Kind: Same}, {Arg: 6, Result: 2, Kind: Same}}
	return &Def{
		Name: name, ONNX: onnx, Doc: doc, MinArgs: 3, MaxArgs: args, MinResults: 1, MaxResults: results,
		Attrs: append([]AttrDef{
			{Name: "activations", Kind: Strings}, {Name: "activation_alpha", Kind: Floats}, {Name: "activation_beta", Kind: Floats},
			{Name: "clip", Kind: Float}, stringAttr("direction", "forward"), intAttr("hidden_size", 0), intAttr("layout", 0),
		}, attrs...),
		Infer: func(s *Sig) error { return inferRecurrent(s, gates) }, Alias: Aliases(states[:results-1]...),
	}
}

func inferRecurrent(s *Sig, gates int) error {
	for i := range s.Args {
		if i == 4 {
			if err := s.want(i, setOf(dtype.I32)); err != nil {
				return err
			}
			continue
		}
		if err := s.want(i, floats); err != nil {
			return err
		}
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	direction, err := s.wantOneOf("direction", "forward", "reverse", "bidirectional")
	if err != nil {
		return err
	}
	layout, err := s.wantFlag("layout")
	if err != nil {
		return err
	}
	for _, a := range s.Def.Attrs {
		if a.Name == "input_forget" || a.Name == "linear_before_reset" {
			if _, err := s.wantFlag(a.Name); err != nil {
				return err
			}
		}
	}
	dirs := shape.N(1)
	if direction == "bidirectional" {
		dirs = shape.N(2)
	}
	if _, err := s.Activations(); err != nil {
		return err
	}
	return s.giveRecurrent(gates, dirs, layout)
}

// giveRecurrent holds the operands against each other and sets the results.
func (s *Sig) giveRecurrent(gates int, dirs shape.Dim, layout bool) error {
	var hidden shape.Dim
	if n := s.Int("hidden_size"); n != 0 {
		size, err := sizeOf(n, "hidden_size")
		if err != nil {
			return err
		}
		hidden = shape.N(size)
	}
	x, err := s.dimsOf(0, 3)
	if err != nil {
		return err
	}
	length, batch, input := x[0], x[1], x[2]
	if layout {
		length, batch = batch, length
	}
	if r, err := s.dimsOf(2, 3); err != nil {
		return err
	} else if err := s.meet("hidden size", &hidden, &r[2]); err != nil {
		return err
	}
	state := func() []shape.Dim {
		if layout {
			return []shape.Dim{batch, dirs, hidden}
		}
		return []shape.Dim{dirs, batch, hidden}
	}
	wide := func(n int) (shape.Dim, error) { return times(hidden, n) }
	rows, err := wide(gates)
	if err != nil {
		return err
	}
	biases, err := wide(2 * gates)
	if err != nil {
		return err
	}
	peepholes, err := wide(3)
	if err != nil {
		return err
	}
	for arg, want := range [][]shape.Dim{nil, {dirs, rows, input}, {dirs, rows, hidden}, {dirs, biases}, {batch}, state(), state(), {dirs, peepholes}} {
		if want == nil || !s.Has(arg) {
			continue
		}
		d, err := s.dimsOf(arg, len(want))
		if err != nil {
			return err
		}
		for i := range d {
			if _, ok := unify(d[i], want[i]); !ok {
				return badShape("operand %d: got %s, want %v for x %s and hidden size %s", arg, s.Args[arg], want, s.Args[0], hidden)
			}
		}
	}
	all := []shape.Dim{length, dirs, batch, hidden}
	if layout {
		all = []shape.Dim{batch, length, dirs, hidden}
	}
	if err := s.give(0, s.Args[0].DType, all...); err != nil {
		return err
	}
	for i := 1; i < len(s.Results); i++ {
		if err := s.give(i, s.Args[0].DType, state()...); err != nil {
			return err
		}
	}
	return nil
}

// Activation is a function of a recurrent cell with its parameters: one of
// package elementwise by its name, or scaled_tanh for Alpha*tanh(Beta*x).
type Activation struct {
	Op          string
	Alpha, Beta float64
}

// cellFunction is an activation with the defaults of its parameters.
type cellFunction struct {
	Activation
	params int
}

// cellFunctions are the functions of recurrent cells by their names in models,
// which programs write in capitals and in small letters.
var cellFunctions = func() map[string]cellFunction {
	funcs := map[string]cellFunction{"scaledtanh": {Activation{"scaled_tanh", 1, 1}, 2}}
	for _, f := range elementwise.Functions() {
		if f.Cell == "" {
			continue
		}
		c := cellFunction{Activation{Op: f.Name}, len(f.Params)}
		for i, p := range f.Params {
			*[]*float64{&c.Alpha, &c.Beta}[i] = p.Default
		}
		funcs[strings.ToLower(f.Cell)] = c
	}
	return funcs
}()

// Activations returns the functions of a recurrent cell, those of the second
// direction after those of the first. A list for two directions may stand where
// there is one. Parameters in the lists belong, in order, to the functions that
// have any.
func (s *Sig) Activations() ([]Activation, error) {
	defaults := map[string][]string{"rnn": {"Tanh"}, "gru": {"Sigmoid", "Tanh"}, "lstm": {"Sigmoid", "Tanh", "Tanh"}}[s.Def.Name]
	dirs := 1
	if s.Str("direction") == "bidirectional" {
		dirs = 2
	}
	names, _ := s.attr("activations").([]string)
	if len(names) == 0 {
		for range dirs {
			names = append(names[:len(names):len(names)], defaults...)
		}
	}
	if dirs == 1 && len(names) == 2*len(defaults) { // the list of both directions, which ONNX has as the default of an RNN
		names = names[:len(defaults)]
	}
	if len(names) != dirs*len(defaults) {
		return nil, badShape("activations: got %q, want %d of them", names, dirs*len(defaults))
	}
	alphas, _ := s.attr("activation_alpha").([]float64)
	betas, _ := s.attr("activation_beta").([]float64)
	out := make([]Activation, len(names))
	for i, name := range names {
		f, ok := cellFunctions[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Errorf("activations: got %q, want one of %s: %w", name, strings.Join(slices.Sorted(maps.Keys(cellFunctions)), ", "), ErrUnsupported)
		}
		if f.params > 0 && len(alphas) > 0 {
			f.Alpha, alphas = alphas[0], alphas[1:]
		}
		if f.params > 1 && len(betas) > 0 {
			f.Beta, betas = betas[0], betas[1:]
		}
		out[i] = f.Activation
	}
	if clip := s.Float("clip"); clip < 0 || math.IsNaN(clip) {
		return nil, badShape("clip: got %v, want 0 or more", clip)
	}
	return out, nil
}
