package pass

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// aliases are the answers of the alias rules for the calls of a final program:
// all that the passes Outputs and Donate, and lowering, know about sizes. Where
// every view is the whole of its operand, storages are compared by their roots
// alone, so that equal answers mean equal decisions. Where some view is a part
// of its operand, the order of the parts counts too: see ranges.
type aliases struct {
	calls   []aliasCall
	empty   []emptiness
	partial bool // some view is a part of its operand
	open    bool // some call has types without a size: it has no answers, and is never put in place by the passes
	ranges  ranges
}

// aliasCall is a call whose operator has rules.
type aliasCall struct {
	shadow
	of      *ir.Call
	pairs   []aliasPair
	offsets []int64 // of views, by pair, for the sizes of now

	leastMemory, fixed bool // of the context

	tracked bool // Known notes in unsure that it had no bytes
	unsure  bool
}

// aliasPair is the alias rule of an operand and a result.
type aliasPair struct {
	arg, result int
	kind        op.AliasKind
	whole       bool // a view of all bytes of the operand
	view        bool // it may be a view

	// The rules wanted a value that is not known: for the kind, and for the
	// kind or whether it may be a view.
	unsureKind, unsure bool
}

// emptiness is whether a value has no elements: it lies nowhere then.
type emptiness struct {
	id    int
	empty bool
}

// aliasesOf evaluates the rules for the sizes of the structure's program, for
// which all steps have been taken.
func (s *Structure) aliasesOf() aliases {
	var a aliases
	seen := make([]bool, len(s.types))
	note := func(v *ir.Value) {
		if v != nil && !seen[v.ID] {
			seen[v.ID] = true
			a.empty = append(a.empty, emptiness{v.ID, isEmpty(v.Type)})
		}
	}
	for _, v := range s.program.Body.Params {
		note(v)
	}
	for _, v := range s.program.Weights {
		note(v)
	}
	s.program.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, r := range c.Results {
			note(r)
		}
		for _, region := range c.Regions {
			for _, v := range region.Params {
				note(v)
			}
		}
		ac := aliasCall{shadow: shadowOf(c), of: c, leastMemory: s.leastMemory, fixed: s.fixed}
		for arg, operand := range c.Args {
			for result, r := range c.Results {
				if operand.Value != nil && r != nil && isNamed(c.Op.Alias.Rules(), arg, result) {
					ac.pairs = append(ac.pairs, aliasPair{arg: arg, result: result})
				}
			}
		}
		if len(ac.pairs) > 0 {
			a.calls = append(a.calls, ac)
		}
	})
	for i := range a.calls {
		c := &a.calls[i]
		s.fillTracking(c)
		if !c.sig.IsStatic() {
			c.pairs, a.open = nil, true
		}
		c.offsets = make([]int64, len(c.pairs))
		for j := range c.pairs {
			c.pairs[j] = c.say(j)
			a.partial = a.partial || c.pairs[j].kind == op.View && !c.pairs[j].whole
		}
	}
	if a.partial {
		a.ranges = s.rangesOf(&a)
	}
	return a
}

func isEmpty(t op.Type) bool { return t.Shape.NumElements() == 0 }

func isNamed(rules []op.Rule, arg, result int) bool {
	for i := range rules {
		if rules[i].Names(arg, result) {
			return true
		}
	}
	return false
}

// fillTracking is fill with a Known that notes when it has no bytes.
func (s *Structure) fillTracking(c *aliasCall) (known bool) {
	known = s.fill(&c.shadow)
	if c.tracked {
		return known
	}
	inner := c.sig.Known
	c.tracked = true
	c.sig.Known = func(arg int) ([]byte, bool) {
		data, ok := inner(arg)
		c.unsure = c.unsure || !ok && c.sig.Has(arg)
		return data, ok
	}
	return known
}

// say evaluates the rules for the operand and the result of a pair.
func (c *aliasCall) say(pair int) aliasPair {
	arg, result := c.pairs[pair].arg, c.pairs[pair].result
	p := aliasPair{arg: arg, result: result}
	c.unsure = false
	kind, offset := c.sig.AliasOf(arg, result)
	if kind == 0 {
		kind = aliasAlone(&c.sig, arg, result, c.leastMemory, c.fixed)
	}
	p.kind, p.unsureKind = kind, c.unsure
	c.offsets[pair] = int64(offset)
	p.whole = kind == op.View && offset == 0 && bytesOf(c.sig.Args[arg]) == bytesOf(c.sig.Results[result])
	p.view = c.sig.MayAlias(arg, result)
	p.unsure = c.unsure
	return p
}

// fit evaluates the rules for the current sizes and compares: of the calls and
// values that changes concern, unless it is nil. It returns the difference, ""
// if there is none.
func (a *aliases) fit(s *Structure, changed *changes) (why string) {
	for _, e := range a.empty {
		if (changed == nil || changed.isNew[e.id]) && isEmpty(s.types[e.id]) != e.empty && !s.ignores("empty") {
			return "empty"
		}
	}
	for i := range a.calls {
		c := &a.calls[i]
		if changed != nil && c.known && !changed.concerns(&c.shadow) || s.fillTracking(c) {
			continue
		}
		same := true
		for j, p := range c.pairs {
			if c.say(j) == p {
				continue
			}
			if same = false; !s.ignores("alias") {
				return "alias"
			}
		}
		c.known = same
	}
	if a.partial && !a.ranges.again && !a.ranges.fit(s, a) && !s.ignores("ranges") {
		return "ranges"
	}
	return ""
}
