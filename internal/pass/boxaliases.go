package pass

import (
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/op"
)

// aliasOver is [op.Sig.AliasOf] over a box: the kind of the rule that holds at
// all sizes, and for a view whether it is the whole of its operand. ok is false
// where this is not proved.
func (c *formulaCall) aliasOver(arg, result int) (kind op.AliasKind, whole truth, ok bool) {
	if arg >= len(c.args) || c.args[arg] == 0 {
		return 0, no, true
	}
	rules := c.sig.Def.Alias.Rules()
	for i := range rules {
		r := &rules[i]
		if !r.Names(arg, result) {
			continue
		}
		if r.Kind == op.Permute {
			if c.structure.leastMemory {
				return 0, undecided, false
			}
			continue
		}
		t, whole := c.ruleOver(r, arg, result)
		switch t {
		case undecided:
			return 0, undecided, false
		case yes:
			return r.Kind, whole, true
		}
	}
	return 0, no, true
}

// ruleOver reports whether an alias rule holds for an operand and a result.
func (c *formulaCall) ruleOver(r *op.Rule, arg, result int) (holds, whole truth) {
	holds = c.whenOver(r, arg)
	if holds == no {
		return no, no
	}
	if r.Kind != op.View {
		a, b := c.args[arg], c.results[result]
		wide, narrow := c.first[a].DType.Bits(), c.first[b].DType.Bits()
		return holds.and(truthOf(wide == narrow && r.Kind != op.Narrow || wide > narrow && narrow%8 == 0 && r.Kind == op.Narrow)).and(c.haveSameShape(a, b)), no
	}
	if r.Offset == nil {
		return holds, yes
	}
	piece := pieces[c.sig.Def.Name]
	if piece == nil || c.isEmpty(c.args[0]) != no || c.isEmpty(c.results[result]) != no {
		return undecided, undecided
	}
	inOne, whole := piece(c, result)
	return holds.and(inOne), whole
}

// whenOver is the condition of an alias rule.
func (c *formulaCall) whenOver(r *op.Rule, arg int) truth {
	if r.When == nil {
		return yes
	}
	if condition := conditions[c.sig.Def.Name]; condition != nil {
		return condition(c, r, arg)
	}
	return undecided
}

// conditions state for expressions when the alias rules of operators hold, for
// those of builtin operators that have conditions; a test compares both.
var conditions = map[string]func(c *formulaCall, r *op.Rule, arg int) truth{
	"concat":    onlyNonEmpty,
	"transpose": movesOnlyOnes,
	"expand":    sameCount,
	"tile":      sameCount,
	"pad":       padsNothing,

	// Of attributes alone.
	"fused_conv": ofAttributes,
}

func ofAttributes(c *formulaCall, r *op.Rule, _ int) truth { return truthOf(r.When(&c.sig)) }

func onlyNonEmpty(c *formulaCall, _ *op.Rule, arg int) truth {
	only := yes
	for i, id := range c.args {
		if i != arg {
			only = only.and(c.isEmpty(id))
		}
	}
	return only
}

func movesOnlyOnes(c *formulaCall, _ *op.Rule, _ int) truth {
	x := c.arg(0)
	if x == nil {
		return undecided
	}
	perm := make([]int, len(x))
	for i := range perm {
		perm[i] = len(x) - 1 - i
	}
	if c.sig.Attrs.Has("perm") {
		list := c.sig.Ints("perm")
		if len(list) != len(perm) {
			return undecided
		}
		for i, a := range list {
			perm[i] = int(a)
		}
	}
	last, sure := -1, yes
	for _, a := range perm {
		switch c.isNumber(x[a], 1) {
		case undecided:
			sure = undecided
		case no:
			if a < last {
				return no
			}
			last = a
		}
	}
	return sure
}

func sameCount(c *formulaCall, _ *op.Rule, _ int) truth {
	return c.equals(c.Elements(c.args[0]), c.Elements(c.results[0]))
}

func padsNothing(c *formulaCall, _ *op.Rule, _ int) truth {
	pads := c.ints(1)
	if pads == nil {
		return undecided
	}
	nothing := yes
	for _, n := range pads {
		nothing = nothing.and(c.isNumber(n, 0))
	}
	return nothing
}

// pieces say of results that may be parts of an operand whether they lie in it
// in one piece, and whether they are the whole of it. Neither is empty.
var pieces = map[string]func(c *formulaCall, result int) (inOne, whole truth){
	"split": splitPiece,
	"slice": slicePiece,
}

func splitPiece(c *formulaCall, result int) (inOne, whole truth) {
	x, part := c.arg(0), c.dims[c.results[result]]
	axis := c.axis(len(x))
	inOne = yes
	for _, n := range x[:axis] {
		inOne = inOne.and(c.isNumber(n, 1))
	}
	return inOne, c.equals(part[axis], x[axis])
}

func slicePiece(c *formulaCall, _ int) (inOne, whole truth) {
	x, part := c.arg(0), c.dims[c.results[0]]
	for i := range c.args {
		if id := c.args[i]; i > 0 && id != 0 && c.structure.weights[id] == nil {
			return undecided, undecided
		}
	}
	steps := make([]bool, len(x)) // by axis: the step is not 1
	if len(c.args) > 4 && c.args[4] != 0 {
		list, ok := c.numbers(4)
		axes := make([]int64, len(list))
		for i := range axes {
			axes[i] = int64(i)
		}
		if ok && c.args[3] != 0 {
			axes, ok = c.numbers(3)
		}
		if !ok || len(axes) != len(list) {
			return undecided, undecided
		}
		for i, a := range axes {
			if a < 0 {
				a += int64(len(x))
			}
			steps[a] = list[i] != 1
		}
	}
	inOne, whole = yes, yes // whole: all axes after this one are
	for i := len(x) - 1; i >= 0; i-- {
		several := c.isNumber(part[i], 1).not()
		inOne = inOne.and(several.not().or(whole.and(truthOf(!steps[i]))))
		whole = whole.and(c.equals(part[i], x[i]))
	}
	return inOne, whole
}

// viewOver returns the operand that a result is a view of at all sizes, -1 for
// none, see [op.Sig.ViewOf].
func (c *formulaCall) viewOver(result int) (arg int, whole truth, ok bool) {
	for i := range c.args {
		kind, whole, ok := c.aliasOver(i, result)
		if !ok {
			return 0, undecided, false
		}
		if kind == op.View {
			return i, whole, true
		}
	}
	return -1, no, true
}

// integers returns the elements of a constant, nil where they are not known.
func (f *Formulas) integers(id int) []*symbolic.Expr {
	c := formulaCall{Formulas: f, visit: &visit{shadow: shadow{args: []int{id}}}}
	return c.ints(0)
}
