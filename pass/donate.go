package pass

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Donate marks every last use whose bytes the operator table allows the
// result to take, and says why not for the rest.
//
// Requires: static types, outputs, dce (a dead reader would be a later use).
// Guarantees: at most one operand per result is donated; the marked program
// keeps the verifier's rules: a donated value is computed in the same block or
// is a donated parameter, nothing that shares its bytes is read later or by
// the same call, and the operator's alias rule holds for the types.
//
// What it leaves: declining a right that would cost more than it saves (the
// planner).
var Donate = Pass{Name: "donate", Doc: "mark the last uses whose bytes a result may take", Run: donate}

func donate(ctx *Context) error {
	index := map[*ir.Call]int{}
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) { index[c] = len(index) })
	d := &donator{ctx: ctx, index: index, home: map[*ir.Value]storage{}, shared: map[*ir.Value]bool{}}
	d.block(ctx.Program.Body)
	return nil
}

// storage is a byte range of the value that owns the bytes.
type storage struct {
	root      *ir.Value
	lo, hi    int
	readUntil int // index in the block of the last reader
}

func (s storage) overlaps(t storage) bool { return s.root == t.root && s.lo < t.hi && t.lo < s.hi }

type donator struct {
	ctx    *Context
	index  map[*ir.Call]int
	home   map[*ir.Value]storage
	shared map[*ir.Value]bool // roots whose bytes an undeclared operator may keep an alias of
}

// block marks one block. Values of the blocks around it are never donated in
// it: whether it runs is not known.
func (d *donator) block(b *ir.Block) {
	local := map[*ir.Value]bool{} // roots that this block may give up
	last := lastReads(b)
	sharing := map[*ir.Value][]*ir.Value{} // root to the values in its bytes
	put := func(v *ir.Value, s storage) {
		s.readUntil = last[v]
		d.home[v] = s
		sharing[s.root] = append(sharing[s.root], v)
	}
	for _, v := range b.Params {
		n, _ := v.Type.Bytes()
		local[v] = v.Donated
		put(v, storage{root: v, hi: n})
	}
	for i, c := range b.Calls {
		for _, region := range c.Regions {
			d.block(region)
		}
		sig := c.Sig(d.ctx.known)
		for r, v := range c.Results {
			if v == nil {
				continue
			}
			n, _ := v.Type.Bytes()
			if arg, off := viewedArg(sig, r); arg >= 0 {
				of := d.homeOf(c.Args[arg].Value)
				put(v, storage{root: of.root, lo: of.lo + off, hi: of.lo + off + n})
				continue
			}
			if arg := d.choose(c, sig, r, i, local, sharing); arg >= 0 {
				c.Args[arg].Donate = true
				put(v, d.homeOf(c.Args[arg].Value))
				continue
			}
			local[v] = true
			put(v, storage{root: v, hi: n})
		}
		if !c.Op.Alias.Declared() {
			d.share(c)
		}
	}
}

// homeOf returns the storage of a value; weights and values of outer blocks
// that have none yet are their own.
func (d *donator) homeOf(v *ir.Value) storage {
	if s, ok := d.home[v]; ok {
		return s
	}
	n, _ := v.Type.Bytes()
	return storage{root: v, hi: n, readUntil: math.MaxInt}
}

// share marks the bytes of an undeclared operator's operands and results.
func (d *donator) share(c *ir.Call) {
	for _, a := range c.Args {
		if a.Value != nil {
			d.shared[d.homeOf(a.Value).root] = true
		}
	}
	for _, r := range c.Results {
		if r != nil {
			d.shared[d.homeOf(r).root] = true
		}
	}
}

// choose returns the operand whose bytes result r of call c takes, -1 for
// none. Refusals are reported when no operand is chosen.
func (d *donator) choose(c *ir.Call, sig *op.Sig, r, at int, local map[*ir.Value]bool, sharing map[*ir.Value][]*ir.Value) int {
	var refused []plan.Declined
	for arg := range c.Args {
		v := c.Args[arg].Value
		if v == nil || v.Kind == ir.Weight {
			continue
		}
		kind, _ := sig.AliasOf(arg, r)
		if kind == 0 || kind == op.View {
			continue
		}
		reason := ""
		if c.Args[arg].Donate {
			reason = "another result takes its bytes"
		} else {
			reason = d.refuse(c, arg, at, local, sharing)
		}
		if reason == "" {
			return arg
		}
		n, _ := v.Type.Bytes()
		refused = append(refused, plan.Declined{Call: d.index[c], Op: c.Op.Name, Node: c.Node, Operand: arg, Value: v.Name, Reason: reason, Bytes: int64(n)})
	}
	d.ctx.Declined = append(d.ctx.Declined, refused...)
	return -1
}

// refuse returns why the operand's bytes may not be overwritten by call c,
// which is number `at` of its block; "" when they may.
func (d *donator) refuse(c *ir.Call, arg, at int, local map[*ir.Value]bool, sharing map[*ir.Value][]*ir.Value) string {
	v := c.Args[arg].Value
	s := d.homeOf(v)
	switch {
	case s.root.Kind == ir.Weight:
		return "its bytes are a weight's"
	case s.root.Kind == ir.Param && !s.root.Donated:
		return "the input is not donated"
	case !local[s.root]:
		return "it belongs to the block around this one"
	case d.shared[s.root]:
		return "an operator that declares no aliases has seen it"
	}
	for i, a := range c.Args {
		if i != arg && a.Value != nil && d.homeOf(a.Value).overlaps(s) {
			return "its bytes are also another operand's"
		}
	}
	for _, u := range sharing[s.root] {
		if t := d.home[u]; t.readUntil > at && t.overlaps(s) {
			if u == v {
				return "it is read later"
			}
			return fmt.Sprintf("%q, which shares its bytes, is read later", u.Name)
		}
	}
	return ""
}

// lastReads returns for each value the index of the last call of the block
// that reads it, in its regions too; the block's results are read at the end.
func lastReads(b *ir.Block) map[*ir.Value]int {
	last := map[*ir.Value]int{}
	for i, c := range b.Calls {
		readsOf(c, func(v *ir.Value) { last[v] = i })
	}
	for _, v := range b.Results {
		last[v] = math.MaxInt
	}
	return last
}

// readsOf calls f for every value that the call or its regions read.
func readsOf(c *ir.Call, f func(*ir.Value)) {
	for _, a := range c.Args {
		if a.Value != nil {
			f(a.Value)
		}
	}
	for _, region := range c.Regions {
		for _, inner := range region.Calls {
			readsOf(inner, f)
		}
		for _, v := range region.Results {
			f(v)
		}
	}
}
