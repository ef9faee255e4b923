package ir

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Violation is one broken invariant; the numbers are those of verify.go.
type Violation struct {
	Invariant int
	Err       error
	Line      int    // of the call in the text that it was parsed from; 0 if there is none
	Fix       string // what to change; "" where the fault says what is wanted
}

// fixes says what to change in a program that breaks an invariant, where the
// fault does not say what is wanted.
var fixes = map[int]string{
	12: `drop the mark "donate", or donate a copy`,
	13: `drop the mark "donate", or donate a copy`,
	14: `move that use before the call, or drop the mark "donate"`,
	15: `move that use before the call, or drop the mark "donate"`,
	16: `pass it as loop state, or drop the mark "donate"`,
	17: `drop the mark "donate"`,
	18: `drop the mark "donate", or pass a copy as the other operand`,
	19: `declare the aliases of the operator, or drop the mark "donate"`,
}

// Error returns "V7: " and the fault, and, where they are known, the line after
// the number, and what to change after the fault.
func (v *Violation) Error() string {
	text := fmt.Sprintf("V%d", v.Invariant)
	if v.Line > 0 {
		text += fmt.Sprintf(", line %d", v.Line)
	}
	text += ": " + v.Err.Error()
	if v.Fix != "" {
		text += "; " + v.Fix
	}
	return text
}

// Unwrap returns the fault.
func (v *Violation) Unwrap() error { return v.Err }

func violation(invariant int, format string, args ...any) *Violation {
	return &Violation{Invariant: invariant, Err: fmt.Errorf(format, args...), Fix: fixes[invariant]}
}

// Donations marks operands as donated where [Verify] allows it, with the same
// analysis.
type Donations struct{ aliases *Aliases }

// NewDonations returns a Donations for the program, with known as in
// [AliasesOf].
func NewDonations(p *Program, known func(*Value) ([]byte, bool)) *Donations {
	return &Donations{newAliases(p, known, nil)}
}

// Mark marks the operand as donated if the call may donate it, else it returns
// the first *[Violation] (V11 to V19). Calls come in the order of
// [Program.Walk], some may be left out: each mark is made in knowledge of
// those before, and none takes the right of an earlier one away.
func (d *Donations) Mark(c *Call, arg int) error {
	if found := d.aliases.donation(c, arg); len(found) > 0 {
		return found[0]
	}
	c.Args[arg].Donate = true
	return nil
}

// donation checks the donation of one operand, C0 to C2. Calls come in the
// order in which they run; the values that they see have been analysed before,
// with all donations up to there, and later calls do not matter.
func (a *Aliases) donation(c *Call, arg int) []*Violation {
	a.advance(a.order.seen[c])
	v := c.Args[arg].Value
	if v == nil {
		return []*Violation{violation(11, "%s donates operand %d, which is absent", c, arg)}
	}
	found := a.owned(c, v)
	if u, used := a.order.usedAfter(v, c); used {
		found = append(found, violation(15, "%s donates %s, which is used after it by %s", c, v, u))
	}
	for _, x := range a.sharers(v, c) {
		if u, used := a.order.usedAfter(x, c); used {
			found = append(found, violation(14, "%s donates %s, but %s may share its bytes and is used after it by %s", c, v, x, u))
		}
	}
	for i, o := range c.Args {
		switch {
		case i == arg || o.Value == nil || o.Donate && c.Args[arg].Donate && i < arg: // found at operand i
		case o.Value == v && !o.Donate && a.mayShare(c, arg, i):
		case o.Value == v:
			found = append(found, violation(18, "%s donates %s and takes it as operand %d too", c, v, i))
		case a.Overlap(o.Value, v):
			found = append(found, violation(18, "%s donates %s and takes %s, which may share its bytes, as operand %d", c, v, o.Value, i))
		}
	}
	return append(found, a.backed(c, arg)...)
}

// owned checks that all bytes in which v may lie may be given up by the call.
func (a *Aliases) owned(c *Call, v *Value) (found []*Violation) {
	loop := a.order.loop(c)
	for _, e := range a.Extents(v) {
		root := e.Root
		in := ""
		if root == nil {
			found = append(found, violation(13, "%s donates %s, which may lie in the bytes of more values than are followed", c, v))
			continue
		}
		if root != v {
			in = fmt.Sprintf(", which may lie in the bytes of %s", root)
		}
		switch {
		case root.Kind == Weight:
			found = append(found, violation(12, "%s donates %s%s: weights are never donated", c, v, in))
		case root.Kind == Param && !root.Donated && !a.order.isCarried(root):
			x := violation(13, "%s donates %s%s: the parameter is not donated", c, v, in)
			if a.order.home[root] == a.order.steps[0].block {
				x.Fix = `mark the parameter of the program with "donate" too, or drop the mark here`
			}
			found = append(found, x)
		case loop != nil && !a.order.within(root, loop):
			found = append(found, violation(16, "%s donates %s%s: it is defined outside of a region that may run again", c, v, in))
		}
	}
	return found
}

// sharers returns the other values that may share bytes with v and may be used
// after call c, each once.
func (a *Aliases) sharers(v *Value, c *Call) []*Value {
	var out []*Value
	seen := map[*Value]bool{v: true}
	for _, e := range append(slices.Clone(a.Extents(v)), anywhere) {
		alive := slices.DeleteFunc(a.sharing[e.Root], func(x *Value) bool { return a.order.isOver(x, c) })
		a.sharing[e.Root] = alive
		for _, x := range alive {
			if !seen[x] && a.Overlap(x, v) {
				seen[x] = true
				out = append(out, x)
			}
		}
	}
	return out
}

// mayShare reports whether every result that may lie in the bytes of operand
// arg may lie in those of the other operand as well, which is the same value:
// the alias rule is op.Same for both.
func (a *Aliases) mayShare(c *Call, arg, other int) bool {
	if a.broken[c] || !c.Op.Alias.Declared() {
		return false
	}
	var unsure bool
	sig := a.sig(c, &unsure)
	if !sig.IsStatic() {
		return false
	}
	shared := false
	for i, r := range c.Results {
		if r == nil || backedBy(sig, &unsure, arg, i) == no {
			continue
		}
		one, _ := sig.AliasOf(arg, i)
		two, _ := sig.AliasOf(other, i)
		if one != op.Same || two != op.Same || unsure {
			return false
		}
		shared = true
	}
	return shared
}

// backed checks that a wanted result may lie in the donated bytes.
func (a *Aliases) backed(c *Call, arg int) []*Violation {
	v := c.Args[arg].Value
	switch {
	case a.broken[c]:
		return nil // reported as itself
	case !c.Op.Alias.Declared():
		return []*Violation{violation(19, "%s donates %s to %s, which declares no aliases", c, v, c.Op.Name)}
	}
	var unsure bool
	sig := a.sig(c, &unsure)
	for i, r := range c.Results {
		if r != nil && backedBy(sig, &unsure, arg, i) != no {
			return nil
		}
	}
	return []*Violation{violation(17, "%s donates %s, but no result of %s may lie in its bytes", c, v, c.Op.Name)}
}

func (u use) String() string {
	if u.call == nil {
		return "the return of its block"
	}
	return u.call.String()
}
