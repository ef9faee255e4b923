package op

import "slices"

// AliasKind says how a result relates to the bytes of an operand.
type AliasKind uint8

const (
	// View: the result is the operand's bytes, or a contiguous part of them;
	// nothing is computed.
	View AliasKind = iota + 1
	// Same: element k of the result needs only element k of this operand, so
	// the result may overwrite the operand. It holds only where both have
	// the same shape and elements of the same size; [Sig.AliasOf] checks that.
	Same
	// Accumulate: the result is the operand with something added into it.
	// The condition on shapes is that of Same.
	Accumulate
	// Update: the result is the operand with a region overwritten. The
	// condition on shapes is that of Same.
	Update
	// Permute: the result is as many elements of the operand's size in
	// another order, and the kernel puts them so in their own bytes when both
	// are the same ones. It does that alone, where a result of its own is
	// shared among threads, see [Sig.AliasAlone]: an operation that is computed
	// now takes the bytes, a plan only where the least memory is asked for, or
	// where [Sig.IsShared] holds.
	Permute
	// Narrow: element k of the result needs only element k of this operand, and
	// is smaller, but no part of a byte. The result may lie in the first bytes
	// of the operand where one thread computes the elements in their order, see
	// [Sig.AliasAlone].
	Narrow
)

var aliasNames = [...]string{"fresh", "view", "same", "accumulate", "update", "permute", "narrow"}

// String returns the word of the design: "fresh", "view", "same",
// "accumulate", "update", "permute" or "narrow".
func (k AliasKind) String() string { return aliasNames[k] }

// EveryArg as a rule's Arg makes the rule hold for each operand.
const EveryArg = -1

// EveryResult as a rule's Result makes the rule hold for each result.
const EveryResult = -1

// Rule is one alias rule of an operator.
type Rule struct {
	Arg, Result int // operand and result; may be EveryArg and EveryResult
	Kind        AliasKind

	// Each says that the rule holds for the operand Arg+n and the result
	// Result+n, for every n from 0 on.
	Each bool

	// Shared reports, for a Permute, whether all threads share the computation
	// over the operand's bytes and need no more time than for a result of its
	// own. nil means no.
	Shared func(*Sig) bool

	// When narrows the rule to some calls; nil means all.
	When func(*Sig) bool

	// Offset returns, for a View, where the result starts in the operand in
	// bytes, and false when this call's result is no contiguous part of it.
	// nil means that the result is the whole operand.
	Offset func(s *Sig, result int) (bytes int, ok bool)
}

// Alias holds an operator's alias rules. The zero Alias is undeclared: the
// operator's results may alias everything.
type Alias struct {
	declared bool
	rules    []Rule
	parts    func(s *Sig, at []int) (ok bool)
	box      func(s *Sig, result int, at []int) (arg int, ok bool)
}

// Fresh declares that every result lies in bytes of its own.
func Fresh() Alias { return Alias{declared: true} }

// Aliases declares the rules; a pair that no rule names is fresh.
func Aliases(rules ...Rule) Alias { return Alias{declared: true, rules: rules} }

// SameAs declares that result 0 may overwrite any of the given operands.
func SameAs(args ...int) Alias {
	a := Alias{declared: true}
	for _, i := range args {
		a.rules = append(a.rules, Rule{Arg: i, Kind: Same})
	}
	return a
}

// NarrowTo declares what [SameAs] does, and that result 0 may lie in the first
// bytes of any of the given operands where its elements are smaller.
func NarrowTo(args ...int) Alias {
	a := SameAs(args...)
	for _, i := range args {
		a.rules = append(a.rules, Rule{Arg: i, Kind: Narrow})
	}
	return a
}

// ViewOf declares that result 0 is the whole of the given operand's bytes.
func ViewOf(arg int) Alias {
	return Alias{declared: true, rules: []Rule{{Arg: arg, Kind: View}}}
}

// OfParts returns rules of an operator that puts its operands together: a says
// how its results may overwrite operands or be views of them, and parts where
// the operands are in result 0. Each part is a box of the result, of the rank
// of the result: along axis d it begins at the index at[i*rank+d], and has the
// sizes of operand i. A negative index says that operand i is no part; parts is
// false where none is. Parts share no element. An operand may be computed
// where it is a part of the result; the kernel leaves it as it is there, and
// writes the elements around the parts.
func (a Alias) OfParts(parts func(s *Sig, at []int) (ok bool)) Alias {
	a.declared, a.parts = true, parts
	return a
}

// OfBoxes returns rules of an operator whose results may be boxes of an
// operand: a says how its results may overwrite operands or be views of them,
// and box which operand has the elements of the result, of as many axes: those
// from index at[d] on along each axis d. The result may lie in the operand's
// bytes; the call computes nothing then.
func (a Alias) OfBoxes(box func(s *Sig, result int, at []int) (arg int, ok bool)) Alias {
	a.declared, a.box = true, box
	return a
}

// HasParts reports whether the operator puts its operands together, as
// [Alias.OfParts] declares.
func (a Alias) HasParts() bool { return a.parts != nil }

// HasBoxes reports whether results may be boxes of an operand, as
// [Alias.OfBoxes] declares.
func (a Alias) HasBoxes() bool { return a.box != nil }

// Moves reports whether the operator computes nothing: its results are elements
// of operands, which need not be copied where a result lies in an operand's
// bytes, or an operand in those of the result. A copy is one.
func (d *Def) Moves() bool {
	return d.Name == "copy" || d.Alias.HasParts() || d.Alias.HasBoxes() ||
		slices.ContainsFunc(d.Alias.rules, func(r Rule) bool { return r.Kind == View })
}

// Declared reports whether the operator said anything about aliasing.
func (a Alias) Declared() bool { return a.declared }

// Rules returns the declared rules, which must not be written.
func (a Alias) Rules() []Rule { return a.rules }

// AliasOf returns how the given result of this call may relate to the given
// operand: 0 (fresh) or the kind of the rule that holds, with the byte offset
// of the result in the operand. Conditions of the rule and of its kind are
// checked against the types of the call; an undeclared operator returns 0,
// because nothing of it may be put in place (see [Sig.MayAlias]). Rules for one
// thread do not count, see [Sig.AliasAlone].
func (s *Sig) AliasOf(arg, result int) (kind AliasKind, offsetBytes int) {
	if !s.Has(arg) {
		return 0, 0
	}
	for i := range s.Def.Alias.rules {
		r := &s.Def.Alias.rules[i]
		if !r.Names(arg, result) || r.Kind.alone() || r.When != nil && !r.When(s) {
			continue
		}
		if r.Kind == View {
			if r.Offset == nil {
				return View, 0
			}
			if off, ok := r.Offset(s, result); ok {
				return View, off
			}
			continue
		}
		a, b := s.Args[arg], s.Results[result]
		if a.Shape == b.Shape && a.Shape != nil && a.Shape.IsStatic() && a.DType.Bits() == b.DType.Bits() {
			return r.Kind, 0
		}
	}
	return 0, 0
}

// Parts returns where the operands are in result 0, as [Alias.OfParts] says:
// one index per operand and axis of the result, in a list that it appends to
// none. It is nil where no operand is a part of it, or where the result is a
// view.
func (s *Sig) Parts(none []int) []int {
	if s.Def.Alias.parts == nil || !s.IsStatic() {
		return nil
	}
	if of, _ := s.ViewOf(0); of >= 0 {
		return nil
	}
	n := len(s.Args) * s.Results[0].Shape.Rank()
	list := slices.Grow(none, n)[:len(none)+n]
	if !s.Def.Alias.parts(s, list[len(none):]) {
		return nil
	}
	return list
}

// BoxOf returns the operand that the result is a box of, as [Alias.OfBoxes]
// says, and sets at, which has an entry per axis of the result, to the index of
// the operand's element with which it begins. arg is -1 where it is a box of
// none. A contiguous box is a [View], too.
func (s *Sig) BoxOf(result int, at []int) (arg int) {
	if s.Def.Alias.box == nil || !s.IsStatic() || s.Results[result].IsZero() {
		return -1
	}
	arg, ok := s.Def.Alias.box(s, result, at)
	if !ok {
		return -1
	}
	return arg
}

// alone reports whether one thread computes a result over its operand.
func (k AliasKind) alone() bool { return k == Permute || k == Narrow }

// AliasAlone returns the kind of a rule by which the result may lie in the
// operand's bytes, from their beginning on, if one thread computes it: Permute,
// Narrow, or 0 where there is none. What [Sig.AliasOf] returns goes first.
func (s *Sig) AliasAlone(arg, result int) AliasKind {
	if !s.Has(arg) {
		return 0
	}
	a, b := s.Args[arg], s.Results[result]
	if !a.IsStatic() || !b.IsStatic() {
		return 0
	}
	for i := range s.Def.Alias.rules {
		r := &s.Def.Alias.rules[i]
		if !r.Kind.alone() || !r.Names(arg, result) {
			continue
		}
		fits := a.Shape == b.Shape && a.DType.Bits() > b.DType.Bits() && b.DType.Bits()%8 == 0
		if r.Kind == Permute {
			fits = a.DType.Bits() == b.DType.Bits() && a.Shape.NumElements() == b.Shape.NumElements()
		}
		if fits && (r.When == nil || r.When(s)) {
			return r.Kind
		}
	}
	return 0
}

// IsShared reports whether the rule of [Sig.AliasAlone] is one by which all
// threads compute the result over the operand, in no more time than elsewhere.
func (s *Sig) IsShared(arg, result int) bool {
	if s.AliasAlone(arg, result) != Permute {
		return false
	}
	for i := range s.Def.Alias.rules {
		if r := &s.Def.Alias.rules[i]; r.Kind == Permute && r.Names(arg, result) {
			return r.Shared != nil && r.Shared(s)
		}
	}
	return false
}

// ViewOf returns the operand that the result is a view of, the first of
// several, with the byte offset of the result in it. arg is -1 where it is a
// view of none.
func (s *Sig) ViewOf(result int) (arg, offsetBytes int) {
	for i := range s.Args {
		if kind, offset := s.AliasOf(i, result); kind == View {
			return i, offset
		}
	}
	return -1, 0
}

// MayAlias reports whether the result may share bytes with the operand
// although no donation was made: a view, or an operator that declared nothing.
func (s *Sig) MayAlias(arg, result int) bool {
	if !s.Def.Alias.declared {
		return true
	}
	for i := range s.Def.Alias.rules {
		r := &s.Def.Alias.rules[i]
		if r.Kind == View && r.Names(arg, result) && (r.When == nil || r.When(s)) {
			return true
		}
	}
	return false
}

// Names reports whether the rule is about the given operand and result.
func (r *Rule) Names(arg, result int) bool {
	if r.Each {
		return arg >= r.Arg && arg-r.Arg == result-r.Result
	}
	return (r.Arg == arg || r.Arg == EveryArg) && (r.Result == result || r.Result == EveryResult)
}
