package tenure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/states"
	"github.com/tenure-go/tenure/ir"
)

// WithStates makes the model one whose states a [States] keeps: inputs that a
// run takes from the run before, such as the keys and values of a decoder. A
// pair names such an input, and the output that is the next run's input.
// Without pairs they are found by the names that exporters use:
// past_key_values.N.key and present.N.key, past_N and present_N, h0 and hn,
// state and stateN, x_in and x_out, x and next_x. The error of a model without
// any is [ErrInput].
//
// Where the model appends rows to a state, by Concat or by an Attention with
// past keys, the input becomes a buffer with a capacity, in which a run writes
// the new rows alone ([StateAppended]). [Model.States] lists what becomes of
// each state. The model has further inputs and outputs then, whose names begin
// with "states."; [Session.NewStates] makes what passes them.
//
// In a model that two decoders were merged into, one with a past and one
// without, an input chooses between them, such as use_cache_branch. It is one
// of the states' then: a [States] chooses the one with a past where rows are
// there.
func WithStates(pairs ...StatePair) Option {
	return func(o *loadOptions) { o.states, o.pooled, o.pairs = true, false, append([]StatePair{}, pairs...) }
}

// StatePair names an input and the output that is that input of the next run.
type StatePair struct{ Input, Output string }

// StateKind says what a run does with a state.
type StateKind int

const (
	StateReplaced StateKind = iota // the output is a value of its own, which takes the place of the state
	StateSame                      // the output has the state's type, and comes back in its bytes where the program allows it
	StateAppended                  // a buffer with a capacity: a run writes its rows behind those that are there
	StateWritten                   // a buffer with a capacity: a run writes its rows where the model's other inputs say
	StateHeld                      // the first run computes it, and others leave it: one region of a branch in the model returns it as it came
)

// String returns "replaced", "same", "appended", "written" or "held".
func (k StateKind) String() string {
	if k < 0 || int(k) >= len(stateKinds) {
		return fmt.Sprintf("state kind %d", int(k))
	}
	return stateKinds[k]
}

var stateKinds = []string{"replaced", "same", "appended", "written", "held"}

// StateInfo describes a state of a model.
type StateInfo struct {
	StatePair
	Kind StateKind
	Axis int    // along which rows are appended or written; -1 of other states
	Why  string // of a StateReplaced: why rows are not appended to it
}

// String returns "past.0.key -> present.0.key: appended along axis 2".
func (i StateInfo) String() string {
	text := fmt.Sprintf("%s -> %s: %s", i.Input, i.Output, i.Kind)
	switch {
	case i.Axis >= 0:
		text += fmt.Sprintf(" along axis %d", i.Axis)
	case i.Why != "":
		text += " (" + i.Why + ")"
	}
	return text
}

// States describes the states of a model that was loaded with [WithStates], in
// the order of the inputs; none of another model.
func (m *Model) States() []StateInfo {
	if m.none() || m.states == nil {
		return nil
	}
	return slices.Clone(m.states.infos)
}

// stateful is what a model has of its states.
type stateful struct {
	*states.Result
	infos  []StateInfo
	pooled bool // the states are pools of blocks
}

// keepStates rewrites the program so that states lie in buffers. Inputs and
// outputs that it gets are behind those of the file.
func (m *Model) keepStates(pairs []StatePair, pooled bool) error {
	if len(pairs) == 0 {
		if pairs = m.pairsByName(); len(pairs) == 0 {
			return inputError{fmt.Errorf("states: got inputs %s and outputs %s, want pairs of names that exporters use, or pairs given to WithStates", m.paramNames(), names(m.outputs))}
		}
	}
	var places []states.Pair
	for _, p := range pairs {
		at := states.Pair{Input: slices.IndexFunc(m.program.Body.Params, func(v *ir.Value) bool { return v.Name == p.Input }), Output: m.output(p.Output)}
		switch {
		case at.Input < 0:
			return inputError{fmt.Errorf("states: got input %q, want one of %s", p.Input, m.paramNames())}
		case at.Output < 0:
			return inputError{fmt.Errorf("states: got output %q, want one of %s", p.Output, names(m.outputs))}
		case slices.ContainsFunc(places, func(o states.Pair) bool { return o.Input == at.Input || o.Output == at.Output }):
			return inputError{fmt.Errorf("states: input %q and output %q: one of them is in another pair too", p.Input, p.Output)}
		}
		places = append(places, at)
	}
	rewrite := states.Rewrite
	if pooled {
		rewrite = states.RewriteBlocks
	}
	result, err := rewrite(m.program, places, ir.Known(m.file.Weights))
	if err != nil {
		return fmt.Errorf("states: %w", err)
	}
	m.states = &stateful{Result: result, pooled: pooled}
	for i, s := range result.States {
		m.states.infos = append(m.states.infos, StateInfo{StatePair: pairs[i], Kind: StateKind(s.Kind), Axis: s.Axis, Why: s.Why})
	}
	for _, v := range m.program.Body.Params[len(m.file.Inputs):] {
		m.file.Inputs = append(m.file.Inputs, onnx.Value{Name: v.Name, Type: v.Type})
	}
	for _, v := range m.program.Body.Results[len(m.outputs):] {
		m.file.Outputs = append(m.file.Outputs, onnx.Value{Name: v.Name, Type: v.Type})
		m.outputs = append(m.outputs, infoOf(v, false))
	}
	return m.runLoadPasses()
}

// runLoadPasses runs the passes of a program that was just read.
func (m *Model) runLoadPasses() error {
	ctx := &pass.Context{Program: m.program, Constants: m.file.Weights, MaxFold: maxFold, MaxFill: maxFill}
	passes := pass.Load
	if m.floats {
		passes = slices.DeleteFunc(slices.Clone(passes), func(p pass.Pass) bool { return p.Name == pass.Quantised.Name })
	}
	err := pass.Run(ctx, passes, nil)
	m.file.Notes = append(m.file.Notes, ctx.Notes...)
	return err
}

func (m *Model) paramNames() string {
	var list []string
	for _, v := range m.program.Body.Params {
		list = append(list, v.Name)
	}
	return strings.Join(list, ", ")
}

// pairsByName finds states by the names of inputs and outputs.
func (m *Model) pairsByName() (pairs []StatePair) {
	taken := map[string]bool{}
	for _, v := range m.program.Body.Params {
		for _, name := range successors(v.Name) {
			i := m.output(name)
			if i < 0 || name == v.Name || taken[name] || !alike(v, m.program.Body.Results[i]) {
				continue
			}
			taken[name] = true
			pairs = append(pairs, StatePair{v.Name, name})
			break
		}
	}
	return pairs
}

// alike reports whether a value may be the next one of a state: it has the same
// element type and rank, where they are known.
func alike(a, b *ir.Value) bool {
	return a.Type.DType == b.Type.DType && (a.Type.Shape == nil || b.Type.Shape == nil || a.Type.Shape.Rank() == b.Type.Shape.Rank())
}

// successors are the names that exporters give to the output which an input of
// a name takes in the next run, the most usual first.
func successors(name string) []string {
	list := []string{
		strings.Replace(name, "past_key_values", "present", 1), strings.Replace(name, "past_key_values", "present_key_values", 1),
		strings.Replace(name, "past", "present", 1), strings.Replace(name, "past", "new", 1),
	}
	if stem, ok := strings.CutSuffix(name, "0"); ok {
		list = append(list, stem+"n")
	}
	if stem, ok := strings.CutSuffix(name, "_in"); ok {
		list = append(list, stem+"_out")
	}
	if stem, ok := strings.CutPrefix(name, "in_"); ok {
		list = append(list, "out_"+stem)
	}
	if stem, ok := strings.CutSuffix(name, "_prev"); ok {
		list = append(list, stem, stem+"_next")
	}
	return append(list, name+"N", name+"n", name+"_n", name+"_out", name+"_next", "next_"+name, "new_"+name)
}

// errNoStates is the error for a model that was loaded without states.
var errNoStates = errors.New("the model was loaded without WithStates")
