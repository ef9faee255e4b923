package ir

import (
	"errors"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/op"
)

// The invariants of programs. Each has a fixture in testdata/verify that
// breaks it.
//
//	V1   A program has a body, every block stands in one place, every call too,
//	     and every call has an operator with a shape rule and a name that the
//	     text form allows. The other invariants are checked only where V1 holds.
//	V2   Every value is defined in one place, and records it: its kind, call and index.
//	V3   IDs are unique and were assigned by the program.
//	V4   Names are unique and not empty.
//	V5   A value is defined before it is used, in the same block or one around it.
//	V6   Calls have as many operands, results and regions as the operator says,
//	     and the operands that it needs.
//	V7   Attributes are declared, of the declared kind, sorted, each given once;
//	     those that the operator needs are there.
//	V8   Values have types, and those of results fit the operator's shape rule:
//	     they agree in every size that both know.
//	V9   The regions of a branch have no parameters and return values of the
//	     call's number and types. The region of a loop takes the number of the
//	     iteration, its condition and the loop state, and returns the condition
//	     and the call's results; the next state fits the parameters.
//	V10  The values that a block returns exist.
//	V11  Only parameters of the program are marked as donated, and only operands
//	     that are present.
//	V12  Weights are never donated, nor values that may lie in their bytes.
//	V13  C0: a donated value is fresh, a donated parameter, or a parameter of a
//	     loop's region, which is copied in, in all bytes in which it may lie.
//	V14  C0: nothing that may share bytes with a donated value is used after the
//	     donating call.
//	V15  C1: the donating call is the last use of the value on every path.
//	     Earlier users only read: they stand before it, and one that donates
//	     breaks V15 itself.
//	V16  C1: in a region that may run again, only values that it defines are donated.
//	V17  C2: a wanted result may lie in the donated bytes, by the operator's alias
//	     rules. For types that are not static yet: it could for some sizes.
//	V18  No byte of a donated operand is in another operand of the call, unless
//	     that is the same value and the result may overwrite both, element by
//	     element.
//	V19  An operator that declares no aliases takes no donated operand.
//	V20  No result is written into a value, and no operand is marked as viewed:
//	     [Functionalize] makes such programs pure. V11 to V19 are checked only
//	     where V20 holds.
//
// Functionalize keeps V1 to V10 and, for each result that is written:
//
//	V21  C0: weights are not written.
//	V22  C0: a parameter of the program that is written is donated.
//	V23  C2: the result has the element type and the shape of what it is written
//	     into.
//	V24  A view is made of one operand, by an operator with an alias rule for it.
//	     One that is written has each element once, at a known place: it is
//	     the whole operand in its order, a split, a slice by steps of one between
//	     known bounds, or a transpose. A call writes a value once, and values
//	     outside of its regions only if it is a branch or a loop.

// Verify returns nil when the program keeps all invariants, else all the
// violations joined, in the order of their stages and of the program.
// [errors.As] finds a *[Violation].
func Verify(p *Program) error { return VerifyKnown(p, nil) }

// VerifyKnown is [Verify] with the bytes of weights, see [Known]: shape rules
// and places of views that depend on them are checked exactly.
func VerifyKnown(p *Program, known func(*Value) ([]byte, bool)) error {
	v := newVerifier(p, known)
	switch {
	case !v.form():
	case p.IsPure():
		v.donations()
	default:
		v.purity()
	}
	return errors.Join(v.found...)
}

// verifyForm checks V1 to V10.
func verifyForm(p *Program, known func(*Value) ([]byte, bool)) error {
	v := newVerifier(p, known)
	v.form()
	return errors.Join(v.found...)
}

func newVerifier(p *Program, known func(*Value) ([]byte, bool)) *verifier {
	if known == nil {
		known = Known(nil)
	}
	return &verifier{p: p, known: known, broken: map[*Call]bool{}, seen: map[*Block]bool{}, calls: map[*Call]bool{}}
}

// form checks V1 to V10, and V11 for parameters. It reports whether V1 holds.
func (v *verifier) form() bool {
	if v.structure(); len(v.found) > 0 {
		return false
	}
	v.values()
	v.scopes(v.p.Body, map[*Value]bool{}, v.p.Weights)
	v.p.Walk(func(_ *Block, c *Call) {
		v.line = c.Line
		v.call(c)
	})
	return true
}

// purity checks V20.
func (v *verifier) purity() {
	v.p.Walk(func(_ *Block, c *Call) {
		if v.line = c.Line; !c.isPure() {
			v.report(20, "%s writes a value or makes views: Functionalize makes the program pure", c)
		}
	})
}

type verifier struct {
	p      *Program
	known  func(*Value) ([]byte, bool)
	found  []error
	broken map[*Call]bool // calls that break V6 to V9
	seen   map[*Block]bool
	calls  map[*Call]bool
	line   int // of the call that is checked, 0 for none
}

func (v *verifier) report(invariant int, format string, args ...any) {
	found := violation(invariant, format, args...)
	found.Line = v.line
	v.found = append(v.found, found)
}

// structure checks V1.
func (v *verifier) structure() {
	if v.p == nil || v.p.Body == nil {
		v.report(1, "the program has no body")
		return
	}
	for i, w := range v.p.Weights {
		if w == nil {
			v.report(1, "weight %d is missing", i)
		}
	}
	v.blockStructure(v.p.Body, "the body of the program")
}

func (v *verifier) blockStructure(b *Block, what string) {
	if b == nil {
		v.report(1, "%s is missing", what)
		return
	}
	if v.seen[b] {
		v.report(1, "%s stands in two places", what)
		return
	}
	v.seen[b] = true
	for i, x := range b.Params {
		if x == nil {
			v.report(1, "parameter %d of %s is missing", i, what)
		}
	}
	for i, c := range b.Calls {
		switch {
		case c == nil:
			v.report(1, "call %d of %s is missing", i, what)
			continue
		case v.calls[c]:
			v.report(1, "%s stands in two places", c)
			continue
		case c.Op == nil:
			v.report(1, "%s has no operator", c)
		case c.Op.Infer == nil:
			v.report(1, "%s: the operator has no shape rule", c)
		case !isOpName(c.Op.Name):
			v.report(1, "%s: got operator name %q, want letters, digits, _ and . and no keyword", c, c.Op.Name)
		}
		v.calls[c] = true
		for _, r := range c.Regions {
			v.blockStructure(r, "a region of "+c.String())
		}
	}
}

// values checks V2, V3, V4, V8 for the presence of types, and V11 for
// parameters.
func (v *verifier) values() {
	defined := map[*Value]bool{}
	ids := map[int]*Value{}
	names := map[string]*Value{}
	check := func(x *Value, kind ValueKind, def *Call, index int, donatable bool) {
		if defined[x] {
			v.report(2, "%s is defined in two places", x)
			return
		}
		defined[x] = true
		if x.Kind != kind || x.Def != def || kind != Weight && x.Index != index {
			v.report(2, "%s does not know where it is defined", x)
		}
		if other := ids[x.ID]; other != nil {
			v.report(3, "%s and %s have the ID %d", other, x, x.ID)
		} else if x.ID < 1 || x.ID > v.p.lastID {
			v.report(3, "%s has the ID %d, which the program did not assign", x, x.ID)
		}
		ids[x.ID] = x
		if other := names[x.Name]; other != nil {
			v.report(4, "%s and %s have one name", other, x)
		} else if x.Name == "" {
			v.report(4, "the value with ID %d has no name", x.ID)
		}
		names[x.Name] = x
		if !x.Type.DType.IsValid() {
			v.report(8, "%s has no type", x)
		}
		if x.Donated && !donatable {
			v.report(11, "%s is marked as donated and is no parameter of the program", x)
		}
	}
	for _, x := range v.p.Weights {
		check(x, Weight, nil, 0, false)
	}
	params := func(b *Block, ofProgram bool) {
		for i, x := range b.Params {
			check(x, Param, nil, i, ofProgram)
		}
	}
	params(v.p.Body, true)
	v.p.Walk(func(_ *Block, c *Call) {
		for _, r := range c.Regions {
			params(r, false)
		}
		for i, x := range c.Results {
			if x != nil {
				check(x, Result, c, i, false)
			}
		}
	})
}

// scopes checks V5 and V10 in a block that sees the visible values and others.
func (v *verifier) scopes(b *Block, visible map[*Value]bool, others []*Value) {
	var mine []*Value
	see := func(values []*Value) {
		for _, x := range values {
			if x != nil && !visible[x] {
				visible[x] = true
				mine = append(mine, x)
			}
		}
	}
	see(others)
	see(b.Params)
	for _, c := range b.Calls {
		v.line = c.Line
		for _, o := range c.Args {
			if o.Value != nil && !visible[o.Value] {
				v.report(5, "%s uses %s, which is not defined before it", c, o.Value)
			}
		}
		for _, x := range c.Writes {
			if x != nil && !visible[x] {
				v.report(5, "%s writes %s, which is not defined before it", c, x)
			}
		}
		for _, r := range c.Regions {
			v.scopes(r, visible, nil)
		}
		see(c.Results)
	}
	v.line = 0
	for i, x := range b.Results {
		switch {
		case x == nil:
			v.report(10, "result %d of %s does not exist", i, v.blockName(b))
		case !visible[x]:
			v.report(5, "%s returns %s, which is not defined in it", v.blockName(b), x)
		}
	}
	for _, x := range mine {
		delete(visible, x)
	}
}

func (v *verifier) blockName(b *Block) string {
	if b == v.p.Body {
		return "the program"
	}
	name := "a region"
	v.p.Walk(func(_ *Block, c *Call) {
		if slices.Contains(c.Regions, b) {
			name = "a region of " + c.String()
		}
	})
	return name
}

// call checks V6 to V9.
func (v *verifier) call(c *Call) {
	before := len(v.found)
	v.arity(c)
	if len(v.found) == before {
		v.attributes(c)
	}
	if len(v.found) == before && c.Op.Branch {
		v.branch(c)
	}
	if len(v.found) == before && c.Op.Loop {
		v.loop(c)
	}
	if len(v.found) == before {
		v.types(c)
	}
	v.broken[c] = v.broken[c] || len(v.found) > before
}

func (v *verifier) arity(c *Call) {
	if err := c.Op.Arity(len(c.Args), len(c.Results)); err != nil {
		v.report(6, "%s: %w", c, err)
		return
	}
	if len(c.Regions) != c.Op.Regions {
		v.report(6, "%s: got %d regions, want %d", c, len(c.Regions), c.Op.Regions)
	}
	for i := range c.Op.MinArgs {
		if c.Args[i].Value == nil {
			v.report(6, "%s: operand %d is absent, want a value", c, i)
		}
	}
}

func (v *verifier) attributes(c *Call) {
	if err := c.Op.CheckAttrs(c.Attrs); err != nil {
		v.report(7, "%s: %w", c, err)
	}
	byName := func(x, y op.Attr) int { return strings.Compare(x.Name, y.Name) }
	if !slices.IsSortedFunc(c.Attrs, byName) {
		v.report(7, "%s: the attributes are not sorted", c)
	}
	for i := 1; i < len(c.Attrs); i++ {
		if c.Attrs[i].Name == c.Attrs[i-1].Name {
			v.report(7, "%s: attribute %q is given twice", c, c.Attrs[i].Name)
		}
	}
}

func (v *verifier) branch(c *Call) {
	for i, r := range c.Regions {
		if len(r.Params) > 0 {
			v.report(9, "%s: region %d has parameters", c, i)
		}
		if len(r.Results) != len(c.Results) {
			v.report(9, "%s: got %d results of region %d, want %d", c, len(r.Results), i, len(c.Results))
			continue
		}
		for j, x := range r.Results {
			if want := c.Results[j]; x != nil && want != nil && !fits(x.Type, want.Type) {
				v.report(9, "%s: got type %s of result %d of region %d, want %s", c, x.Type, j, i, want.Type)
			}
		}
	}
}

func (v *verifier) loop(c *Call) {
	if err := c.loopArity(); err != nil {
		v.report(9, "%s: %w", c, err)
		return
	}
	region := c.Regions[0]
	for i, p := range region.Params[LoopArgs:] {
		for what, x := range map[string]*Value{"operand": c.Args[LoopArgs+i].Value, "result of the region": region.Results[1+i]} {
			if x != nil && !fits(x.Type, p.Type) {
				v.report(9, "%s: got type %s of the %s that is carried as %s, want %s", c, x.Type, what, p, p.Type)
			}
		}
	}
}

// types checks V8 for a call. One whose operands lack types, or whose regions
// lack results, cannot be evaluated, and that is reported where they lack.
func (v *verifier) types(c *Call) {
	for _, o := range c.Args {
		v.broken[c] = v.broken[c] || o.Value != nil && !o.Value.Type.DType.IsValid()
	}
	for _, r := range c.Regions {
		v.broken[c] = v.broken[c] || slices.Contains(r.Results, nil)
	}
	if v.broken[c] {
		return
	}
	types, err := inferResults(c, v.known)
	if err != nil {
		v.report(8, "%s: %w", c, err)
		return
	}
	for i, x := range c.Results {
		if x != nil && x.Type.DType.IsValid() && !fits(x.Type, types[i]) {
			v.report(8, "%s: got type %s of %s, want %s", c, x.Type, x, types[i])
		}
	}
}

// donations checks V11 for operands and V12 to V19.
func (v *verifier) donations() {
	aliases := newAliases(v.p, v.known, v.broken)
	v.p.Walk(func(_ *Block, c *Call) {
		for i, o := range c.Args {
			if !o.Donate {
				continue
			}
			for _, found := range aliases.donation(c, i) {
				found.Line = c.Line
				v.found = append(v.found, found)
			}
		}
	})
}
