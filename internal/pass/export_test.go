package pass

import (
	"maps"
	"slices"

	"github.com/tenure-go/tenure/internal/symbolic"
)

// Ignore makes the structure admit sizes for which a guard of these kinds has
// another answer.
func (s *Structure) Ignore(kinds []string) {
	s.ignored = func(kind string) bool { return slices.Contains(kinds, kind) }
}

// SizeRules and ContentRules are the operators with a rule for expressions.
func SizeRules() []string { return slices.Sorted(maps.Keys(sizeRules)) }

func ContentRules() []string { return slices.Sorted(maps.Keys(contentRules)) }

// BreakSizeRule makes the rule of an operator wrong by one until restore runs.
func BreakSizeRule(name string) (restore func()) {
	rule := sizeRules[name]
	sizeRules[name] = func(c *formulaCall, i int) []*symbolic.Expr { return oneMore(rule(c, i)) }
	return func() { sizeRules[name] = rule }
}

// BreakContentRule is BreakSizeRule for the elements of constants.
func BreakContentRule(name string) (restore func()) {
	rule := contentRules[name]
	contentRules[name] = func(c *formulaCall) []*symbolic.Expr { return oneMore(rule(c)) }
	return func() { contentRules[name] = rule }
}

func oneMore(list []*symbolic.Expr) []*symbolic.Expr {
	var out []*symbolic.Expr
	for _, e := range list {
		out = append(out, e.Add(symbolic.Const(1)))
	}
	return out
}

// Allow leaves n bytes for folding in the context. Call it after Record.
func (c *Context) Allow(n int64) {
	c.allowance = allowanceOf(c)
	c.allowance.bytes = n
	if c.recorder != nil {
		c.recorder.allowance = *c.allowance
	}
}

// QuestionNames returns the kinds of guards that are questions.
func QuestionNames() []string { return questionNames[:] }
