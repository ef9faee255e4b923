package eager

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// settle finds a place for every result: over an operand that was given up, if
// the alias rule and the operand's holders allow it, and else in fresh bytes.
// Operands that were donated come first, because the call is an error if no
// result takes their bytes; then the operands in order. On an error nothing was
// consumed.
func (r *runner) settle(s *signature) error {
	for range s.results {
		r.places = append(r.places, place{arg: -1})
		r.results = append(r.results, nil)
	}
	for k := range s.results {
		if !s.results[k].IsZero() {
			r.places[k] = r.placeOf(s, k)
		}
	}
	err := r.checkDonations(s, -1)
	for k := 0; err == nil && k < len(s.results); k++ {
		if !s.results[k].IsZero() {
			r.results[k], err = r.resultAt(s, k)
		}
	}
	if err != nil {
		r.dropResults()
	}
	return err
}

func (r *runner) placeOf(s *signature, k int) place {
	for _, sem := range [2]tensor.CopySemantics{tensor.DonateInput, tensor.ReuseInput} {
		if sem == tensor.DonateInput && !r.strict {
			continue
		}
		for i, given := range r.given {
			if given == sem && r.fits(s, i, k) && r.taken.InPlace(r.claims[i]) && r.contiguous[i] == nil && !r.isTaken(i, k) {
				return place{arg: i}
			}
		}
	}
	for i, copied := range r.contiguous {
		// The copy becomes the result, so it must have its type.
		if copied != nil && r.fits(s, i, k) && s.results[k] == (op.Type{DType: copied.DType(), Shape: copied.Shape()}) && !r.isTaken(i, k) {
			return place{arg: i, copy: true}
		}
	}
	return place{arg: -1}
}

// fits reports whether the alias rule lets result k overwrite operand i.
func (r *runner) fits(s *signature, i, k int) bool {
	kind := s.aliasOf(i, k).kind
	return kind == op.Same || kind == op.Accumulate || kind == op.Update || kind == op.Permute
}

// isTaken reports whether a result before the k-th lies over operand i.
func (r *runner) isTaken(i, k int) bool {
	for _, p := range r.places[:k] {
		if p.arg == i {
			return true
		}
	}
	return false
}

// resultAt makes the tensor of result k at its place.
func (r *runner) resultAt(s *signature, k int) (*tensor.Tensor, error) {
	t, p := s.results[k], r.places[k]
	switch {
	case p.copy:
		result := r.contiguous[p.arg]
		r.contiguous[p.arg] = nil
		r.places[k].arg = -1 // it is the runner's own: fresh bytes that hold the operand's elements already
		r.stats.Fresh, r.stats.FreshBytes = r.stats.Fresh+1, r.stats.FreshBytes+int64(result.NumBytes())
		return result, nil
	case p.arg >= 0:
		l := r.flat
		if l == nil {
			l = s.layouts[k]
		}
		r.stats.InPlace++
		return r.taken.Keep(r.claims[p.arg], t.DType, l)
	}
	result, err := tensor.MakeOnHost(r.from, t.DType, t.Shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.call.op.def.Name, err)
	}
	r.stats.Fresh, r.stats.FreshBytes = r.stats.Fresh+1, r.stats.FreshBytes+int64(result.NumBytes())
	return result, nil
}

// checkDonations returns an error for the first donated operand whose bytes no
// result takes, except operand shown, whose bytes the result is.
func (r *runner) checkDonations(s *signature, shown int) error {
	if !r.strict {
		return nil
	}
	for i, given := range r.given {
		if given != tensor.DonateInput || i == shown && r.contiguous[i] == nil {
			continue
		}
		used := false
		for _, p := range r.places {
			used = used || p.arg == i && !p.copy
		}
		if !used {
			return r.unusable(s, i, shown)
		}
	}
	return nil
}

// unusable says why no result lies in the bytes of operand i, which was
// donated.
func (r *runner) unusable(s *signature, i, shown int) error {
	x, result := r.args[i], s.results[0]
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: operand %d, %s, is donated, but its bytes cannot be the result's: %s: %w",
			s.op.Name, i, x, fmt.Sprintf(format, args...), tensor.ErrNotReusable)
	}
	t := r.taken.Tensor(r.claims[i])
	if !declares(s.op, i) {
		return fail("no result of %s lies over this operand", s.op.Name)
	}
	switch {
	case shown >= 0 && shown != i:
		return fail("the result lies in operand %d", shown)
	case !t.Layout().IsContiguous():
		return fail("got layout %s, want row-major order", t.Layout())
	case r.contiguous[i] != nil:
		return fail("its elements are not aligned")
	case x.Shape != result.Shape && !permutes(s.op, i) && !r.fits(s, i, 0):
		return fail("the result is %s, want the operand's shape", result)
	case x.DType.Bits() != result.DType.Bits():
		return fail("the result is %s, want elements of the same width", result)
	case r.fits(s, i, 0):
		return fail("the result lies in operand %d, which is given up too (pass one of them with Reuse)", r.places[0].arg)
	}
	return fail("this call of %s writes no result over it", s.op.Name)
}

// permutes reports whether the operator puts some calls' operand i in another
// order in place.
func permutes(def *op.Def, i int) bool {
	return slices.ContainsFunc(def.Alias.Rules(), func(r op.Rule) bool { return r.Kind == op.Permute && r.Arg == i })
}

// declares reports whether the operator has an alias rule for operand i at all.
func declares(def *op.Def, i int) bool {
	for _, rule := range def.Alias.Rules() {
		if rule.Arg == i || rule.Arg == op.EveryArg {
			return true
		}
	}
	return false
}
