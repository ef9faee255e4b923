package op

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/shape"
)

// chainOps is elementwise work in one go. Like fusedOps it has no model format.
var chainOps = []*Def{{
	Name: "fused_chain",
	Doc: "applies elementwise functions one after the other, on f32; a step names its function, its operands (from 0, or results of " +
		"the steps before, from -1 back) and its parameters",
	MinArgs: 1, MaxArgs: Variadic,
	Attrs: []AttrDef{{Name: "steps", Kind: Strings, Needed: true}},
	Infer: inferChain, Alias: Aliases(Rule{Arg: EveryArg, Kind: Same}),
}}

// ChainStep is one function of a fused_chain.
type ChainStep struct {
	Func   string
	Args   []int // operands of the call from 0, results of steps before as -1, -2, ... counted back from this one
	Params []float64
}

// ChainFunc says how many operands and parameters a function of a chain
// takes.
type ChainFunc struct{ Args, Params int }

// ChainFuncs are the functions of chains by name: those of operators, and silu
// (swish with alpha 1) and gelu_tanh.
func ChainFuncs() map[string]ChainFunc { return chainFuncs }

var chainFuncs = func() map[string]ChainFunc {
	funcs := map[string]ChainFunc{}
	for _, f := range elementwise.Functions() {
		if f.Chained {
			funcs[f.Name] = ChainFunc{Args: 1, Params: len(f.Params)}
		}
	}
	for _, f := range elementwise.Binaries() {
		if f.Chained {
			funcs[f.Name] = ChainFunc{Args: 2}
		}
	}
	return funcs
}()

// String returns the step as the attribute holds it.
func (c ChainStep) String() string {
	words := []string{c.Func}
	for _, a := range c.Args {
		words = append(words, strconv.Itoa(a))
	}
	for _, p := range c.Params {
		words = append(words, strconv.FormatFloat(p, 'g', -1, 64))
	}
	return strings.Join(words, " ")
}

// ChainSteps returns the steps of a call of fused_chain.
func (s *Sig) ChainSteps() ([]ChainStep, error) {
	texts, _ := s.attr("steps").([]string)
	if len(texts) == 0 {
		return nil, badShape("steps: got none, want one or more")
	}
	steps := make([]ChainStep, len(texts))
	for i, text := range texts {
		words := strings.Fields(text)
		if len(words) == 0 {
			return nil, badShape("steps: got an empty step %d, want a function", i)
		}
		f, ok := chainFuncs[words[0]]
		if !ok || len(words) != 1+f.Args+f.Params {
			return nil, badShape("steps: got %q, want a function of elements with its operands and parameters", text)
		}
		steps[i].Func = words[0]
		for _, w := range words[1 : 1+f.Args] {
			a, err := strconv.Atoi(w)
			if err != nil || a >= len(s.Args) || a < -i {
				return nil, badShape("steps: got operand %q in %q, want %d to %d", w, text, -i, len(s.Args)-1)
			}
			steps[i].Args = append(steps[i].Args, a)
		}
		for _, w := range words[1+f.Args:] {
			p, err := strconv.ParseFloat(w, 64)
			if err != nil {
				return nil, badShape("steps: got parameter %q in %q, want a number", w, text)
			}
			steps[i].Params = append(steps[i].Params, p)
		}
	}
	return steps, nil
}

func inferChain(s *Sig) error {
	steps, err := s.ChainSteps()
	if err != nil {
		return err
	}
	used := make([]bool, len(s.Args))
	for _, step := range steps {
		for _, a := range step.Args {
			if a >= 0 {
				used[a] = true
			}
		}
	}
	if at := slices.Index(used, false); at >= 0 {
		return badShape("steps: operand %d is used by none", at)
	}
	if len(s.Args) > 0 && s.Args[0].DType != dtype.F32 && !s.Args[0].IsZero() {
		return badShape("operand 0: got %s, want f32", s.Args[0])
	}
	return inferBroadcast(s, floats, dtype.Invalid)
}

// BlockOf reads a static shape as a block of whole axes of a larger one, with
// axes of size 1 before and after it: element i of the result takes element
// i/inner modulo count. A number is a block of no axes.
func BlockOf(arg, result *shape.Shape) (inner, count int, ok bool) {
	lead := result.Rank() - arg.Rank()
	if lead < 0 {
		return 0, 0, false
	}
	inner, count = 1, 1
	const before, inside, behind = 0, 1, 2 // from the last axis on
	place := before
	for i := result.Rank() - 1; i >= 0; i-- {
		size := 1
		if i >= lead {
			size = arg.Size(i - lead)
		}
		n := result.Size(i)
		switch {
		case size == n && size == 1:
		case size == n && place != behind:
			place = inside
			count *= n
		case size == 1 && place == before:
			inner *= n
		case size == 1:
			place = behind
		default:
			return 0, 0, false
		}
	}
	if count == 1 {
		inner = 1
	}
	return inner, count, true
}
