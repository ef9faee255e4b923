package ir

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Extent is a range of bytes in which a value may lie.
type Extent struct {
	// Root is the value whose storage it is: a parameter, a weight, or a
	// result that lies in bytes of its own. nil stands for any of them.
	Root *Value

	// Low and High are the range in bytes of the root; High is the largest
	// int64 when the end is not known.
	Low, High int64

	// Exact says that the value, if it lies in this root, is exactly these
	// bytes; otherwise it is some of them.
	Exact bool
}

func (e Extent) overlaps(f Extent) bool {
	if e.Root == nil || f.Root == nil {
		return e.Low < e.High && f.Low < f.High
	}
	return e.Root == f.Root && max(e.Low, f.Low) < min(e.High, f.High)
}

// unknownEnd is the end of a byte range whose size is not known.
const unknownEnd = math.MaxInt64

// maxRoots bounds the extents of one value. One that may lie in more roots
// may lie anywhere: chains of undeclared operators must not cost the square
// of their length.
const maxRoots = 64

var anywhere = Extent{High: unknownEnd}

// part returns where size bytes at the offset of a value with extent e lie.
func (e Extent) part(offset, size int64) Extent {
	if e.Exact && size != unknownEnd && e.Low+offset+size <= e.High {
		e.Low += offset
		e.High = e.Low + size
	} else if offset != 0 || size != unknownEnd {
		e.Exact = false
	}
	return e
}

// Aliases states for each value of a program in which bytes it may lie. Unknown
// places count as shared: a result of an operator that declares no alias rules
// may lie in any operand, and a view whose place is not known may be any part
// of its operand.
//
// A result that an operator may write into a donated operand has the extents
// of that operand. Whether it really lies there is for the planner to choose;
// no other value can tell.
type Aliases struct {
	extents map[*Value][]Extent
	order   *order
	sharing map[*Value][]*Value // root to values in it that may be used again
	done    int                 // steps of the order that are analysed
	known   func(*Value) ([]byte, bool)
	broken  map[*Call]bool // calls whose alias rules cannot be evaluated
}

// AliasesOf analyses the program, in which types and regions must hold (V1 to
// V10 of [Verify]). Donate marks count. known returns the bytes of weights, on
// which the places of views may depend; it may be nil. The result describes
// the program as it is now.
func AliasesOf(p *Program, known func(*Value) ([]byte, bool)) *Aliases {
	a := newAliases(p, known, nil)
	a.advance(len(a.order.steps))
	return a
}

func newAliases(p *Program, known func(*Value) ([]byte, bool), broken map[*Call]bool) *Aliases {
	if known == nil {
		known = Known(nil)
	}
	a := &Aliases{extents: map[*Value][]Extent{}, sharing: map[*Value][]*Value{}, order: newOrder(p), known: known, broken: broken}
	for _, v := range p.Weights {
		a.set(v, own(v))
	}
	return a
}

// advance analyses up to the given step. The result does not depend on later
// steps.
func (a *Aliases) advance(to int) {
	for ; a.done < to; a.done++ {
		if s := a.order.steps[a.done]; s.call != nil {
			a.call(s.call)
		} else {
			a.params(s.block)
		}
	}
}

// Extents returns where the value may lie: one range per root. It must not be
// written.
func (a *Aliases) Extents(v *Value) []Extent {
	if e, ok := a.extents[v]; ok {
		return e
	}
	return own(v)
}

// Overlap reports whether two values may share a byte.
func (a *Aliases) Overlap(x, y *Value) bool {
	for _, e := range a.Extents(x) {
		for _, f := range a.Extents(y) {
			if e.overlaps(f) {
				return true
			}
		}
	}
	return false
}

// own is the storage of a value that shares no other's.
func own(v *Value) []Extent {
	size := sizeOf(v.Type)
	return []Extent{{Root: v, High: size, Exact: size != unknownEnd}}
}

func sizeOf(t op.Type) int64 {
	if t.IsStatic() {
		if n, err := t.Bytes(); err == nil {
			return int64(n)
		}
	}
	return unknownEnd
}

func (a *Aliases) set(v *Value, extents []Extent) {
	a.extents[v] = extents
	for _, e := range extents {
		a.sharing[e.Root] = append(a.sharing[e.Root], v)
	}
}

func (a *Aliases) params(b *Block) {
	for _, v := range b.Params {
		extents := own(v)
		// A parameter of a region starts as an operand or as a result of the
		// iteration before; that of a loop as a copy.
		if s, nested := a.order.site[b]; nested && !s.call.Op.Loop {
			for _, o := range s.call.Args {
				extents = a.addHull(extents, o.Value)
			}
		}
		a.set(v, extents)
	}
}

func (a *Aliases) call(c *Call) {
	var unsure bool
	var sig *op.Sig
	if !a.broken[c] {
		sig = a.sig(c, &unsure)
	}
	for i, v := range c.Results {
		if v != nil {
			a.set(v, a.result(c, i, sig, &unsure))
		}
	}
}

// sig returns the signature of the call with a Known that notes when it had no
// bytes: a rule that wanted them might decide otherwise on the actual ones.
func (a *Aliases) sig(c *Call, unsure *bool) *op.Sig {
	s := c.Sig(a.known)
	inner := s.Known
	s.Known = func(arg int) ([]byte, bool) {
		b, ok := inner(arg)
		*unsure = *unsure || !ok && s.Has(arg)
		return b, ok
	}
	return s
}

// result returns the extents of result i of the call.
func (a *Aliases) result(c *Call, i int, sig *op.Sig, unsure *bool) []Extent {
	v := c.Results[i]
	var out []Extent
	switch {
	case a.broken[c] || !c.Op.Branch && !c.Op.Alias.Declared():
		out = own(v)
		for _, o := range c.Args {
			out = a.addHull(out, o.Value)
		}
		for _, r := range c.Regions {
			for _, x := range r.Results {
				out = a.addHull(out, x)
			}
		}
		for _, x := range c.Results[:i] {
			out = a.addHull(out, x)
		}
	case c.Op.Branch:
		for _, r := range c.Regions {
			for _, e := range a.Extents(r.Results[i]) {
				out = add(out, e)
			}
		}
	default:
		for arg, o := range c.Args {
			if o.Value != nil {
				out = a.operand(out, sig, unsure, arg, i, o, v)
			}
		}
	}
	if out == nil || sizeOf(v.Type) == 0 {
		return own(v)
	}
	return out
}

// operand adds the extents that result i has because of one operand.
func (a *Aliases) operand(out []Extent, sig *op.Sig, unsure *bool, arg, i int, o Operand, v *Value) []Extent {
	offset, is := viewOf(sig, unsure, arg, i)
	if is == no && o.Donate {
		is = backedBy(sig, unsure, arg, i)
	}
	switch is {
	case yes:
		for _, e := range a.Extents(o.Value) {
			out = add(out, e.part(offset, sizeOf(v.Type)))
		}
	case maybe:
		for _, e := range own(v) {
			out = add(out, e)
		}
		out = a.addHull(out, o.Value)
	}
	return out
}

// addHull adds all bytes in which v may lie, as bytes of which some are meant.
func (a *Aliases) addHull(out []Extent, v *Value) []Extent {
	if v == nil {
		return out
	}
	for _, e := range a.Extents(v) {
		e.Exact = false
		out = add(out, e)
	}
	return out
}

// add keeps one range per root, and at most maxRoots of them.
func add(out []Extent, e Extent) []Extent {
	i := slices.IndexFunc(out, func(x Extent) bool { return x.Root == e.Root })
	switch {
	case len(out) > 0 && out[0].Root == nil:
		return out
	case e.Root == nil || i < 0 && len(out) == maxRoots:
		return []Extent{anywhere}
	case i < 0:
		return append(out, e)
	}
	if x := &out[i]; *x != e {
		*x = Extent{Root: e.Root, Low: min(x.Low, e.Low), High: max(x.High, e.High)}
	}
	return out
}

// answer is the alias rules' answer for an operand and a result.
type answer uint8

const (
	no answer = iota
	maybe
	yes
)

// viewOf says whether the result is a view of the operand, and where it
// starts. The rules of a call are evaluated for static types only.
func viewOf(s *op.Sig, unsure *bool, arg, result int) (offset int64, is answer) {
	if !s.IsStatic() {
		switch rule := findRule(s, arg, result, op.View); {
		case rule == nil:
			return 0, no
		case rule.When == nil && rule.Offset == nil:
			return 0, yes
		}
		return 0, maybe
	}
	*unsure = false
	kind, bytes := s.AliasOf(arg, result)
	if kind == op.View {
		return int64(bytes), yes
	}
	if s.MayAlias(arg, result) || *unsure && findRule(s, arg, result, op.View) != nil {
		return 0, maybe
	}
	return 0, no
}

// backedBy says whether the result may lie in the operand's bytes once the
// operand is donated.
func backedBy(s *op.Sig, unsure *bool, arg, result int) answer {
	if s.IsStatic() {
		*unsure = false
		if kind, _ := s.AliasOf(arg, result); kind != 0 || s.AliasAlone(arg, result) != 0 {
			return yes
		}
		if !*unsure {
			return no
		}
	}
	if findRule(s, arg, result, op.View) != nil {
		return maybe
	}
	x, y := s.Args[arg], s.Results[result]
	wide, narrow := x.DType.Bits(), y.DType.Bits()
	y.DType = x.DType // in place only the size of the elements counts
	kinds := []op.AliasKind{op.Permute}
	if fits(x, y) {
		kinds = append(kinds, op.Same, op.Accumulate, op.Update)
	}
	if wide > narrow && narrow%8 == 0 && fits(x, y) {
		kinds = []op.AliasKind{op.Narrow}
	} else if wide != narrow {
		return no
	}
	for _, kind := range kinds {
		if findRule(s, arg, result, kind) != nil {
			return maybe
		}
	}
	return no
}

// findRule returns the first rule of the kind for the operand and the result,
// whether its condition holds or not.
func findRule(s *op.Sig, arg, result int, kind op.AliasKind) *op.Rule {
	rules := s.Def.Alias.Rules()
	for i := range rules {
		if r := &rules[i]; r.Kind == kind && r.Names(arg, result) {
			return r
		}
	}
	return nil
}
