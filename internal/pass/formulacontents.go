package pass

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/symbolic"
)

// content returns the elements of result i of a call of constants, which
// becomes a constant: integers that come from sizes, on their way to a shape.
// It is nil where they are not known.
func (c *formulaCall) content(i int) []*symbolic.Expr {
	t := c.first[c.results[i]]
	if t.DType != dtype.I64 && t.DType != dtype.I32 && t.DType != dtype.Bool {
		return nil
	}
	n, ok := c.Elements(c.results[i]).Value()
	if !ok || n > mostContents {
		return nil
	}
	rule := contentRules[c.sig.Def.Name]
	if rule == nil {
		return nil
	}
	list := rule(c)
	if int64(len(list)) != n {
		return nil
	}
	return list
}

// contentRules return the elements of the first result of a call, in row-major
// order, nil where they are not known.
var contentRules = map[string]func(c *formulaCall) []*symbolic.Expr{
	"shape": func(c *formulaCall) []*symbolic.Expr {
		x := c.arg(0)
		if x == nil {
			return nil
		}
		lo, hi := c.sig.ShapeRange()
		return x[lo:hi]
	},
	"size":      func(c *formulaCall) []*symbolic.Expr { return []*symbolic.Expr{c.Elements(c.args[0])} },
	"identity":  sameContent,
	"copy":      sameContent,
	"reshape":   sameContent,
	"squeeze":   sameContent,
	"unsqueeze": sameContent,
	"flatten":   sameContent,
	"cast": func(c *formulaCall) []*symbolic.Expr {
		if dt := c.first[c.args[0]].DType; dt != dtype.I64 && dt != dtype.I32 {
			return nil
		}
		if c.first[c.results[0]].DType == dtype.I32 {
			for _, e := range c.ints(0) {
				if lo, hi, ok := e.Bounds(c.box); !ok || lo != int64(int32(lo)) || hi != int64(int32(hi)) {
					return nil
				}
			}
		}
		return c.ints(0)
	},
	"concat": func(c *formulaCall) []*symbolic.Expr {
		var all []*symbolic.Expr
		if len(c.arg(0)) != 1 {
			return nil
		}
		for i := range c.args {
			list := c.ints(i)
			if list == nil {
				return nil
			}
			all = append(all, list...)
		}
		return all
	},
	"gather":      gatherContent,
	"slice":       sliceContent,
	"add":         elementwiseContent((*symbolic.Expr).Add),
	"sub":         elementwiseContent((*symbolic.Expr).Sub),
	"mul":         elementwiseContent((*symbolic.Expr).Mul),
	"reduce_prod": reducedContent((*symbolic.Expr).Mul, 1),
	"reduce_sum":  reducedContent((*symbolic.Expr).Add, 0),
}

func init() {
	contentRules["div"] = func(c *formulaCall) []*symbolic.Expr {
		return elementwiseContent(c.truncated)(c)
	}
	contentRules["max"] = func(c *formulaCall) []*symbolic.Expr { return elementwiseContent(c.larger)(c) }
	contentRules["min"] = func(c *formulaCall) []*symbolic.Expr { return elementwiseContent(c.smaller)(c) }
}

func init() {
	contentRules["equal"] = func(c *formulaCall) []*symbolic.Expr { return elementwiseContent(c.equal)(c) }
	contentRules["where"] = whereContent
}

// equal returns 1 for numbers that are the same at all sizes of the box, 0 for
// those that differ at each.
func (f *Formulas) equal(x, y *symbolic.Expr) *symbolic.Expr {
	lo, hi, ok := x.Sub(y).Bounds(f.box)
	switch {
	case !ok:
		return nil
	case lo == 0 && hi == 0:
		return symbolic.Const(1)
	case lo > 0 || hi < 0:
		return symbolic.Const(0)
	}
	return nil
}

// whereContent chooses among lists of as many elements, or of one.
func whereContent(c *formulaCall) []*symbolic.Expr {
	cond, x, y := c.ints(0), c.ints(1), c.ints(2)
	n := max(len(cond), len(x), len(y))
	out := make([]*symbolic.Expr, n)
	for _, list := range [][]*symbolic.Expr{cond, x, y} {
		if len(list) != n && len(list) != 1 {
			return nil
		}
	}
	for i := range 3 {
		if len(c.arg(i)) > 1 {
			return nil
		}
	}
	for i := range out {
		switch chosen, ok := cond[i%len(cond)].Value(); {
		case ok && chosen != 0:
			out[i] = x[i%len(x)]
		case ok:
			out[i] = y[i%len(y)]
		}
	}
	return out
}

func sameContent(c *formulaCall) []*symbolic.Expr { return c.ints(0) }

// truncated is the quotient of integers that are not negative.
func (f *Formulas) truncated(x, y *symbolic.Expr) *symbolic.Expr {
	if n, ok := y.Value(); ok && n > 0 && f.atLeast(x, 0) {
		return x.Floor(n)
	}
	if f.atLeast(y, 1) {
		return x.Over(y)
	}
	return nil
}

// elementwiseContent is for two operands of as many elements, or of one. A
// result that wraps around is no size, so that no call in a run that is
// accepted has it.
func elementwiseContent(f func(x, y *symbolic.Expr) *symbolic.Expr) func(c *formulaCall) []*symbolic.Expr {
	return func(c *formulaCall) []*symbolic.Expr {
		if len(c.args) != 2 || len(c.arg(0)) > 1 || len(c.arg(1)) > 1 {
			return nil
		}
		x, y := c.ints(0), c.ints(1)
		if x == nil || y == nil || len(x) != len(y) && len(x) != 1 && len(y) != 1 {
			return nil
		}
		out := make([]*symbolic.Expr, max(len(x), len(y)))
		if len(x) == 0 || len(y) == 0 {
			return nil
		}
		for i := range out {
			out[i] = f(x[i%len(x)], y[i%len(y)])
			if !c.fits(out[i], c.first[c.results[0]].DType) {
				out[i] = nil
			}
		}
		return out
	}
}

// fits reports whether a number is one of the type at all sizes of the box.
func (f *Formulas) fits(e *symbolic.Expr, dt dtype.DType) bool {
	lo, hi, ok := e.Bounds(f.box)
	return ok && (dt != dtype.I32 || lo == int64(int32(lo)) && hi == int64(int32(hi)))
}

func reducedContent(f func(x, y *symbolic.Expr) *symbolic.Expr, start int64) func(c *formulaCall) []*symbolic.Expr {
	return func(c *formulaCall) []*symbolic.Expr {
		list := c.ints(0)
		if list == nil || len(c.arg(0)) != 1 {
			return nil
		}
		all := symbolic.Const(start)
		for _, e := range list {
			all = f(all, e)
		}
		if !c.fits(all, c.first[c.results[0]].DType) {
			return nil
		}
		return []*symbolic.Expr{all} // over its only axis, with or without it in the result
	}
}

func gatherContent(c *formulaCall) []*symbolic.Expr {
	list := c.ints(0)
	at, ok := c.numbers(1)
	if list == nil || !ok || len(c.arg(0)) != 1 {
		return nil
	}
	var out []*symbolic.Expr
	for _, i := range at {
		if i < 0 {
			i += int64(len(list))
		}
		if i < 0 || i >= int64(len(list)) {
			return nil
		}
		out = append(out, list[i])
	}
	return out
}

func sliceContent(c *formulaCall) []*symbolic.Expr {
	list := c.ints(0)
	sizes, starts, ok := c.sliceAxes()
	if list == nil || !ok || len(sizes) != 1 {
		return nil
	}
	n, sized := sizes[0].Value()
	first, known := starts[0].Value()
	if !sized || !known || first < 0 || first+n > int64(len(list)) {
		return nil
	}
	if len(c.args) > 4 && c.args[4] != 0 {
		if steps, ok := c.numbers(4); !ok || steps[0] != 1 {
			return nil
		}
	}
	return list[first:][:n]
}
