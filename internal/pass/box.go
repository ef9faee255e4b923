package pass

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/op"
)

// Over derives the sizes of all values over a box, as [Structure.Formulas]
// does, and proves that the structure holds at all sizes of the box that the
// model accepts: that each step has the outcome, and each guard the answer, of
// the sizes for which [Structure.Types] was called last. These must be sizes of
// the box, and Types must have found types for them. why says what is not
// proved, "" if all is.
//
// The proof is by induction over the steps, as for numbers. What is proved of a
// step holds at the sizes at which all steps before it have the same outcome.
// An expression for a size holds where the operator accepts the operands; at
// other sizes the model has no program at all, because programs with branches
// and loops are not proved.
//
// Every size that is proved is nowhere larger than at the upper corner of the
// box, nor at that of any box inside.
func (s *Structure) Over(params [][]*symbolic.Expr, box symbolic.Box) (f *Formulas, why string) {
	b := s.overBox(params, box)
	return b.Formulas, b.prove()
}

// Refuses proves that the model accepts no size of the box: that some operator
// refuses its operands at all sizes, and each step before it has the outcome
// that it has in the structure.
func (s *Structure) Refuses(params [][]*symbolic.Expr, box symbolic.Box) bool {
	if slices.ContainsFunc(s.steps, func(st step) bool {
		v, ok := st.(*visit)
		return !ok || v.failed || len(v.regions) > 0
	}) {
		return false // an operator in a branch that is not taken may refuse its operands
	}
	b := s.overBox(params, box)
	b.refusing = true
	b.prove()
	return b.refused
}

func (s *Structure) overBox(params [][]*symbolic.Expr, box symbolic.Box) *overBox {
	b := &overBox{Formulas: s.newFormulas(params, box), bytes: s.allowance.bytes, work: s.allowance.work}
	b.same, b.ends = make([]bool, len(s.types)), map[int]ends{}
	return b
}

// overBox takes the steps of a structure for all sizes of a box at once.
type overBox struct {
	*Formulas
	bytes, work int64 // that folding may still do, at least

	// refusing looks for a call that refuses its operands. The bytes that
	// constants have now are those of no size of the box then.
	refusing, refused bool
	ends              map[int]ends // by ID
}

func (b *overBox) prove() (why string) {
	s := b.structure
	guards, constant := s.guards, s.constant
	hold := func(at int) (why string) {
		for ; len(guards) > 0 && guards[0].at <= at; guards = guards[1:] {
			g := guards[0]
			if answer, ok := b.answerOver(g); (!ok || answer != g.answer) && !s.ignores(questionNames[g.question]) {
				b.note(b.sizesAsked(g)...)
				return questionNames[g.question] + b.sizesOf(g)
			}
		}
		for ; len(constant) > 0 && constant[0].at <= at; constant = constant[1:] {
			if g := constant[0]; !b.IsSame(g.id) && !s.ignores("value") || b.refusing && !b.hasBytes(g) {
				return "value"
			}
		}
		return ""
	}
	for at, st := range s.steps {
		if why := hold(at); why != "" {
			return why
		}
		switch st := st.(type) {
		case *visit:
			why = b.visit(st)
		case *loopTypes:
			why = "a loop"
		case *frozen:
			why = "the value of an input"
		default:
			why = "possible types"
		}
		if why != "" {
			return why
		}
	}
	b.copyTypes()
	for _, rest := range []func() string{func() string { return hold(len(s.steps)) }, b.views, b.aliases, b.grow} {
		if why := rest(); why != "" {
			return why
		}
	}
	return ""
}

// sizesOf writes the sizes that a question is about, for reports.
func (b *overBox) sizesOf(g guard) string {
	if g.question == sameSize {
		if x, y := b.dims[g.a], b.dims[g.b]; x != nil && y != nil {
			return fmt.Sprintf(" (%s, %s)", x[g.x], y[g.y])
		}
	}
	return ""
}

// sizesAsked returns the sizes that a question is about.
func (b *overBox) sizesAsked(g guard) []*symbolic.Expr {
	x, y := b.dims[g.a], b.dims[g.b]
	switch {
	case g.question == sameSize && x != nil && y != nil:
		return []*symbolic.Expr{x[g.x], y[g.y]}
	case g.question == fewRows && x != nil && y != nil:
		return []*symbolic.Expr{rowsOver(x, len(y))}
	}
	return slices.Concat(x, y)
}

// note keeps what is known of sizes about which a question is not answered.
func (b *overBox) note(sizes ...*symbolic.Expr) {
	b.Modulus = map[string]int64{}
	for _, e := range sizes {
		b.Along = append(b.Along, e.Symbols()...)
	}
	for _, name := range b.Along {
		for _, e := range sizes {
			b.Modulus[name] = max(b.Modulus[name], e.Modulus(name))
		}
	}
}

// noteCall is note for the sizes of a call, and for the numbers that it reads.
func (b *overBox) noteCall(c *shadow) {
	var sizes []*symbolic.Expr
	for _, id := range slices.Concat(c.args, c.results) {
		sizes = append(append(sizes, b.dims[id]...), b.contents[id]...)
	}
	b.note(sizes...)
}

// where names a call for reports.
func (v *visit) where() string {
	if v.node == "" {
		return v.sig.Def.Name
	}
	return v.node + " (" + v.sig.Def.Name + ")"
}

// visit is [visit.take] for a box.
func (b *overBox) visit(v *visit) (why string) {
	if v.failed || len(v.regions) > 0 {
		return "a branch"
	}
	if b.refusing && b.refusesShapes(v) {
		b.refused = true
		return "refused"
	}
	b.take(v)
	if v.fixed {
		if v.asks && (v.outcome != computed || !b.spend(v.bytes, v.work)) {
			return "allowance"
		}
		return ""
	}
	for _, id := range v.results {
		if id != 0 && !b.isDerived(id) {
			b.noteCall(&v.shadow)
			return "sizes of " + v.where()
		}
	}
	if !v.constant {
		return ""
	}
	if !b.fold(v) && !b.structure.ignores("folding") {
		b.noteCall(&v.shadow)
		return "folding of " + v.where()
	}
	if b.refusing {
		b.followEnds(v)
		if v.outcome == computed && b.refusesIndices(v) {
			b.refused = true
			return "refused"
		}
	}
	return ""
}

// isDerived reports whether all sizes of a value are known, and none is below 0
// anywhere, which would be a size that the operator computes in another way or
// refuses.
func (b *overBox) isDerived(id int) bool {
	for _, d := range b.dims[id] {
		if !b.atLeast(d, 0) {
			return false
		}
	}
	return b.dims[id] != nil
}

// spend is [allowance.spend]. It is false where the rest might not suffice.
func (b *overBox) spend(bytes, work int64) bool {
	if bytes > b.bytes || work > b.work {
		return false
	}
	b.bytes -= bytes
	b.work -= work
	return true
}

// fold proves that a call of constants is judged as it was: see
// [allowance.judge].
func (b *overBox) fold(v *visit) bool {
	c := b.callOf(v)
	in, out := symbolic.Const(0), symbolic.Const(0)
	for _, id := range v.args {
		if id != 0 {
			in = in.Add(b.Bytes(id))
		}
	}
	for _, id := range v.results {
		if id != 0 {
			out = out.Add(b.Bytes(id))
		}
	}
	switch b.worth(v, in, out) {
	case undecided:
		return false
	case no:
		return v.outcome == kept
	}
	views := yes
	for i, id := range v.results {
		if id == 0 {
			continue
		}
		arg, _, ok := c.viewOver(i)
		if !ok {
			return false
		}
		views = views.and(truthOf(arg >= 0))
	}
	if views == yes {
		b.settle(v)
		return v.outcome == viewed
	}
	_, most, ok := out.Bounds(b.box)
	if !ok || v.outcome != computed || !b.spend(most, b.mostWork(v)) {
		return false
	}
	b.settle(v)
	return true
}

// worth is [allowance.worth].
func (b *overBox) worth(v *visit, in, out *symbolic.Expr) truth {
	fits := b.isAtMost(out, b.structure.allowance.maxFold).or(b.isAtMost(out.Sub(in), 0))
	if fits != no || v.sig.Def.Name != "constant_of_shape" {
		return fits
	}
	if b.isAtMost(out, b.structure.allowance.maxFill) == no {
		return no
	}
	return undecided
}

// mostWork bounds [workOf].
func (b *overBox) mostWork(v *visit) int64 {
	sum := symbolic.Const(0)
	for _, list := range [2][]int{v.args, v.results} {
		for _, id := range list {
			if id != 0 {
				sum = sum.Add(b.Elements(id))
			}
		}
	}
	if products[v.sig.Def.Name] != nil {
		sum = sum.Mul(sum)
	}
	_, most, ok := sum.Bounds(b.box)
	if !ok {
		return mostWork + 1
	}
	return most
}

// settle notes the constants that a call makes of constants with the same bytes
// at all sizes, in types without other sizes.
func (b *overBox) settle(v *visit) {
	if b.refusing {
		return
	}
	for _, id := range v.args {
		if id != 0 && !(b.IsSame(id) && b.isFixed(id)) {
			return
		}
	}
	for i, id := range v.results {
		if made := v.made[i]; made != 0 && b.isFixed(id) {
			b.same[made] = true
		}
	}
}

// IsSame reports whether a constant is proved to have the same bytes at all
// sizes of the box, by [Structure.Over].
func (f *Formulas) IsSame(id int) bool {
	if f.structure.weights[id] == nil {
		return false
	}
	if !f.structure.varies[id] || f.same != nil && f.same[id] {
		return true
	}
	for _, e := range f.contents[id] {
		if _, ok := e.Value(); !ok {
			return false
		}
	}
	return f.contents[id] != nil
}

// isFixed reports whether a value has the same sizes everywhere.
func (b *overBox) isFixed(id int) bool {
	for _, d := range b.dims[id] {
		if _, ok := d.Value(); !ok {
			return false
		}
	}
	return b.dims[id] != nil
}

// views proves that the calls that the passes asked about are views of as much.
func (b *overBox) views() (why string) {
	for i := range b.structure.views {
		g := &b.structure.views[i]
		v := &visit{shadow: g.call}
		c := b.callOf(v)
		arg, whole, ok := c.viewOver(0)
		if ok && arg >= 0 {
			whole = whole.and(b.haveSameType(v.args[arg], v.results[0]))
		}
		if (!ok || arg != g.arg || whole != truthOf(g.whole)) && !b.structure.ignores("view") {
			b.noteCall(&v.shadow)
			return "view of " + v.where()
		}
	}
	return ""
}

// aliases is [aliases.fit]. Programs in which some view is a part of its
// operand are not proved.
func (b *overBox) aliases() (why string) {
	a := &b.structure.aliases
	if a.open {
		return "sizes that depend on data"
	}
	if a.partial {
		return "a view of a part"
	}
	for _, e := range a.empty {
		if b.isEmpty(e.id) != truthOf(e.empty) && !b.structure.ignores("empty") {
			b.note(b.dims[e.id]...)
			return "empty"
		}
	}
	for i := range a.calls {
		call := &a.calls[i]
		c := b.callOf(&visit{shadow: call.shadow, node: call.of.Node})
		for _, p := range call.pairs {
			kind, whole, ok := c.aliasOver(p.arg, p.result)
			same := ok && !p.unsure && !p.unsureKind && kind == p.kind && (kind != op.View || whole == yes) && b.mayView(c, p) == truthOf(p.view)
			if !same && !b.structure.ignores("alias") {
				b.noteCall(&call.shadow)
				return "alias of " + c.where()
			}
		}
	}
	return ""
}

// mayView is [op.Sig.MayAlias].
func (b *overBox) mayView(c *formulaCall, p aliasPair) truth {
	if !c.sig.Def.Alias.Declared() {
		return yes
	}
	may := no
	rules := c.sig.Def.Alias.Rules()
	for i := range rules {
		if r := &rules[i]; r.Kind == op.View && r.Names(p.arg, p.result) {
			may = may.or(c.whenOver(r, p.arg))
		}
	}
	return may
}

// grow proves that no size of a value of the program decreases anywhere.
func (b *overBox) grow() (why string) {
	for _, id := range b.structure.values {
		if !b.isDerived(id) {
			return "sizes without an expression"
		}
		for _, d := range b.dims[id] {
			if !d.Grows(b.box) {
				return fmt.Sprintf("a size that may decrease (%s)", d)
			}
		}
	}
	return ""
}
