package pass

import (
	"bytes"
	"slices"

	"github.com/tenure-go/tenure/ir"
)

// frozen is a constant with the value of an input.
type frozen struct {
	input, param, made int
	first              []byte // the value that the structure was made with
}

// recordFrozen notes that the constant made takes the place of a parameter.
func (c *Context) recordFrozen(param, made *ir.Value, data []byte) {
	r := c.recorder
	if r == nil {
		return
	}
	r.deciding = append(r.deciding, param.Index)
	r.steps = append(r.steps, &frozen{param.Index, param.ID, made.ID, bytes.Clone(data)})
	r.met = append(r.met, made)
}

// firstValue returns the value that an input had when the structure was made.
func (r *recorder) firstValue(input int) []byte {
	for _, st := range r.steps {
		if f, ok := st.(*frozen); ok && f.input == input {
			return f.first
		}
	}
	return nil
}

// take enters the value that the input has now.
func (f *frozen) take(s *Structure, _ *allowance) (why string) {
	if s.value == nil {
		return "the value of an input"
	}
	data, n := s.value(f.input), bytesOf(s.types[f.param])
	if int64(len(data)) != n {
		return "the value of an input"
	}
	s.types[f.made] = s.types[f.param]
	s.store(f.made, data)
	return ""
}

// Deciding returns the indices of the inputs whose values are constants of the
// program: other values make other instances.
func (s *Structure) Deciding() []int { return s.deciding }

// openBranches returns the branches with results whose types are not all known,
// see [ir.PossibleOf], although their regions' types are inferred.
func (c *Context) openBranches() map[*ir.Call]bool {
	var branches []*ir.Call
	c.Program.Walk(func(_ *ir.Block, call *ir.Call) {
		if call.Op.Branch && opensTypes(call) {
			branches = append(branches, call)
		}
	})
	if len(branches) == 0 {
		return nil
	}
	open := opensOf(c.Program, ir.TypesOf(c.Program), c.known)
	if r := c.recorder; r != nil {
		r.steps = append(r.steps, &possibles{c.Program.Clone(), open})
		r.met = append(r.met, c.Program.Weights...)
	}
	found := map[*ir.Call]bool{}
	for i, call := range branches {
		found[call] = open[i]
	}
	return found
}

// opensOf says of each branch with a result of unknown size, in order, whether
// the types that the result can have are not known.
func opensOf(p *ir.Program, types ir.Types, known func(*ir.Value) ([]byte, bool)) (list []bool) {
	possible := ir.PossibleFor(p, types, known)
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		some, open := false, false
		for _, v := range c.Results {
			if c.Op.Branch && v != nil && !types.Of(v).IsStatic() {
				some, open = true, open || possible.Of(v).Types == nil
			}
		}
		if some {
			list = append(list, open)
		}
	})
	return list
}

// possibles is the answer of opensOf for a copy of the program.
type possibles struct {
	program *ir.Program
	open    []bool
}

func (p *possibles) take(s *Structure, _ *allowance) (why string) {
	if !slices.Equal(opensOf(p.program, s.types, s.knownValue), p.open) && !s.ignores("possible types") {
		return "possible types"
	}
	return ""
}
