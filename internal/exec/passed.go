package exec

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// Results of branches and the state of loops lie in bytes of their own, or in
// bytes that are given up to them: the state of a loop in those of its first
// value, the result of a branch in those of a value from outside in which both
// regions compute it.

// placeBranched places result v of branch k, and says in which bytes each of
// its regions returns it.
func (l *lowering) placeBranched(k, r int, v *ir.Value, n int64) {
	c, to := &l.calls[k], l.of(v)
	if at := l.branchOutside(k, r, k); n > 0 && at.size == n && l.mayPass(v, at) == "" {
		to.place = at
		at.storage.output = at.storage.output || to.isOutput
	} else {
		to.place = l.yieldedOrNew(v, v, n)
	}
	to.storage.passed = true
	for _, region := range c.Regions {
		l.of(region.Results[r]).yielded = to.place
	}
}

// mayPass says why a value that a branch or a loop passes on, v, may not lie at
// a place outside, whose bytes are given up to it; "" if it may.
func (l *lowering) mayPass(v *ir.Value, at place) (reason string) {
	to := l.of(v)
	switch {
	case to.yielded.storage != nil && !to.yielded.startsAt(at):
		return "the result belongs in the bytes that the branches share"
	case to.isOutput && !at.isOutput(at.size):
		return "the output needs a buffer of its own, of its size"
	case l.isForeign(to.carried, at):
		return "the loop carries another value in its bytes"
	}
	return ""
}

// outside is an answer of findOutside for a value: for the call of that number,
// plus one.
type outside struct {
	place
	of int
}

// branchOutside returns the place outside of call k in which both regions of a
// branch, which is call k or inside it, compute result r: see findOutside.
func (l *lowering) branchOutside(branch, r, k int) place {
	var at place
	for i, region := range l.calls[branch].Regions {
		from := l.findOutside(region.Results[r], k)
		if from.storage == nil || i > 0 && from != at {
			return place{}
		}
		at = from
	}
	return at
}

// findOutside returns the place outside of call k, in a region of which v is
// computed, in whose bytes v is computed: through results in place, one after
// the other. It is the zero place if there is none.
func (l *lowering) findOutside(v *ir.Value, k int) place {
	if !l.index.IsInside(v, k) {
		return l.of(v).place
	}
	x := l.of(v)
	if x.outside.of != k+1 {
		x.outside = outside{l.stepOutside(v, k), k + 1}
	}
	return x.outside.place
}

func (l *lowering) stepOutside(v *ir.Value, k int) place {
	if v.Kind != ir.Result || !l.isStatic(v) {
		return place{}
	}
	def := l.index.Def(v)
	n, err := l.bytesOf(v)
	if err != nil {
		return place{}
	}
	if l.calls[def].Op.Branch {
		return l.branchOutside(def, v.Index, k)
	}
	arg, kind, offset := l.bytesFor(def, v.Index)
	if arg < 0 || !l.takes(def, arg, v.Index, kind) {
		return place{}
	}
	at := l.findOutside(l.calls[def].Args[arg].Value, k)
	if at.storage != nil {
		at.offset, at.size = at.offset+int64(offset), n
	}
	return at
}

// placeState places parameter i of the region of loop k, which comes out as a
// result of the same number of bytes that may be nil: in the bytes of its first
// value if this is given up, or in bytes of its own.
func (l *lowering) placeState(k, i int) error {
	c := &l.calls[k]
	p, r := c.Regions[0].Params[i], i-ir.LoopArgs
	v := c.Results[r]
	if v == nil || !l.isStatic(p) {
		return l.placeParam(p, v)
	}
	arg, kind, _ := l.bytesFor(k, r)
	from := place{}
	if arg >= 0 {
		from = l.of(c.Args[arg].Value).place
	}
	if from.size == 0 {
		return l.placeParam(p, v)
	}
	if reason := l.mayPass(v, from); reason != "" {
		l.decline(k, arg, reason)
		return l.placeParam(p, v)
	}
	l.of(p).place = from
	from.storage.passed, from.storage.output = true, from.storage.output || l.of(v).isOutput
	l.list(plan.InPlace{Call: k, Operand: arg, Result: r, Value: v.Name,
		Of: c.Args[arg].Value.Name, Kind: plan.AliasKind(kind.String()), Bytes: from.size})
	return nil
}
