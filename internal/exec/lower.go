package exec

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// place is where a value lives: a byte offset in a storage, and the distances
// of its elements.
type place struct {
	storage *storage
	offset  int64         // of the first element
	size    int64         // bytes of all elements
	layout  *shape.Layout // nil where the elements lie in row-major order without gaps
}

// storage is a range of bytes that values share: views, chains of in-place
// results, the results of a branch, loop state.
type storage struct {
	name   string
	space  plan.Space
	kind   space // the same, once it is settled
	arg    int   // input or output number for those spaces, ID of the stacked result for a slot
	size   int64
	first  int       // of its pieces, arena only
	count  int       // of its pieces
	id     int       // index in the problem, arena only
	start  int64     // where it begins in the arena, once it is placed
	weight int32     // its ID, weight only
	passed bool      // a branch or a loop returns or carries a value in it
	output bool      // a result of the program lies in it
	joined bool      // it has become a part of another one
	owner  *ir.Value // that takes all of its bytes, of the arena

	head, tail *ir.Value // the values that lie in it: see joiner
	values     int       // how many
}

// lowering turns a final program into a placement problem and its answer into
// places, for values of given types, as often as these change. Time is in
// half-steps: call k, in preorder, reads at 2k and writes at 2k+1.
type lowering struct {
	program  *ir.Program
	index    *ir.Index
	sigs     *ir.Signatures
	defs     []*ir.Value // what calls define, in their order
	numbered []*ir.Value // the values by their numbers; nil for number 0, which absent operands and results have
	at       []int32     // the numbers of operands and results, call by call
	joins    []int       // calls whose operands or results may be boxes of others

	leastMemory, oneThread bool // of the options
	apart                  bool // sizes share one arena
	listing                bool // inPlace and declined are filled
	limits                 limits

	fixed []bool // by number of the call: its constants do not depend on sizes

	types    ir.Types
	known    func(*ir.Value) ([]byte, bool)
	possible ir.Possibles // of values whose size depends on data
	calls    []call       // by number
	aliases  []alias      // by number of the result
	boxes    []boxed      // by number of the result
	joiner   *joiner      // nil before it is used
	values   []value      // by ID
	dynamic  int          // number of values whose size depends on data
	made     []storage    // all storages: never more than there is room for, because pointers lead to them
	storages []*storage   // those that results are placed in
	pieces   []plan.Piece // of the storages in the arena
	arena    plan.Problem
	inPlace  []plan.InPlace
	declined []plan.Declined
}

// call is the result of lowering for a call.
type call struct {
	*ir.Call
	sig    *op.Sig
	static bool    // all types have a size
	parts  []int   // where the operands are in the result that is put together of them, as op.Sig.Parts says; empty for none
	split  bool    // parts are those of the types
	lies   bool    // some result may be a view, or lie in a donated operand
	first  int     // the number of its first result among all
	end    int     // the number after those of the calls in its regions
	freed  []int   // dynamic values whose own buffers are freed after the call
	left   [][]int // per region: those that are freed when it ends
}

// value is the result of lowering for a value.
type value struct {
	place
	end      plan.Time // of its last use
	last     int       // the call of its block that uses it last, if it is dynamic; -1 for others
	dynamic  int       // its number among the values whose size depends on data, -1 for others
	yielded  place     // of a result of a region: that of the call's result
	carried  *ir.Value // of a result of a loop's region: the parameter that it becomes in the next iteration
	outside  outside
	isOutput bool // a result of the program is it, or is a view of it
}

func newLowering(p *ir.Program) *lowering {
	l := &lowering{program: p, index: ir.NewIndex(p), values: make([]value, p.NumIDs())}
	l.sigs = ir.NewSignatures(l.index)
	l.calls = make([]call, len(l.index.Calls))
	l.fixed = make([]bool, len(l.index.Calls))
	slots := 0
	for k, c := range l.index.Calls {
		if c.Op.Loop {
			slots += len(c.Results)
		}
		l.calls[k] = call{Call: c.Call, sig: l.sigs.Of(k), end: c.End, first: len(l.aliases), lies: mayLie(c.Call)}
		l.aliases = append(l.aliases, make([]alias, len(c.Results))...)
		for v := range c.Defs() {
			l.defs = append(l.defs, v)
		}
		if c.Op.Alias.HasParts() || c.Op.Alias.HasBoxes() {
			l.joins = append(l.joins, k)
		}
	}
	l.boxes = make([]boxed, len(l.aliases))
	l.made = make([]storage, 0, p.NumIDs()+slots)
	l.number()
	return l
}

// number numbers the values of the program.
func (l *lowering) number() {
	l.numbered = slices.Concat([]*ir.Value{nil}, l.program.Body.Params, l.program.Weights, l.defs)
	numbers := make([]int32, len(l.values)) // by ID
	for n, v := range l.numbered[1:] {
		numbers[v.ID] = int32(n + 1)
	}
	add := func(v *ir.Value) {
		if v == nil {
			l.at = append(l.at, 0)
		} else {
			l.at = append(l.at, numbers[v.ID])
		}
	}
	for _, c := range l.index.Calls {
		for _, a := range c.Args {
			add(a.Value)
		}
		for _, v := range c.Results {
			add(v)
		}
	}
}

// lower places the values, all but where storages lie in the arena, for the
// given types. What it returned before is over.
func (l *lowering) lower(types ir.Types, known func(*ir.Value) ([]byte, bool)) error {
	l.reset(types, known)
	if err := l.placeInterface(); err != nil {
		return err
	}
	if err := l.checkFinal(); err != nil {
		return err
	}
	l.findOutputs()
	for k := range l.calls {
		if err := l.placeResults(k); err != nil {
			return fmt.Errorf("%s: %w", l.calls[k].Where(), err)
		}
	}
	for k := range l.calls {
		if c := &l.calls[k]; c.Op.Loop {
			if err := l.checkCarried(c.Call); err != nil {
				return err
			}
		}
	}
	l.collectEnds()
	if l.placeParts() {
		l.clearEnds()
		l.collectEnds()
	}
	l.placeOutputs()
	if l.dynamic > 0 {
		l.endDynamic(l.program.Body, 0)
	}
	l.collectPieces()
	l.useSpares()
	return l.checkTotal()
}

// reset drops the state that depends on the last types.
func (l *lowering) reset(types ir.Types, known func(*ir.Value) ([]byte, bool)) {
	l.sigs.Set(types, known)
	l.types, l.known, l.possible = types, known, l.sigs.Possible(l.program, types)
	for _, v := range l.numbered[1:] {
		l.values[v.ID] = value{last: -1, dynamic: -1}
	}
	for k := range l.calls {
		c := &l.calls[k]
		c.freed, c.left = nil, nil
		if len(c.Regions) > 0 {
			c.left = make([][]int, len(c.Regions))
		} else if l.fixed[k] && !l.sigs.Changed(k) {
			continue // all that follows from the signature is as it was
		}
		c.static, c.split = c.sig.IsStatic(), false
		for r := range c.Results {
			l.aliases[c.first+r].known, l.boxes[c.first+r].known = false, false
		}
	}
	l.dynamic, l.made, l.storages, l.pieces = 0, l.made[:0], l.storages[:0], l.pieces[:0]
	l.inPlace, l.declined = l.inPlace[:0], l.declined[:0]
}

// of returns the record of a value.
func (l *lowering) of(v *ir.Value) *value { return &l.values[v.ID] }

// isStatic reports whether the value has a known size.
func (l *lowering) isStatic(v *ir.Value) bool { return l.types[v.ID].IsStatic() }

func (l *lowering) bytesOf(v *ir.Value) (int64, error) {
	t := l.types.Of(v)
	if !t.IsStatic() {
		return 0, fmt.Errorf("value %q has type %s, want a size: %w", v.Name, t, op.ErrUnsupported)
	}
	n, err := t.Bytes()
	return int64(n), err
}

// isDynamic reports whether the call is bound when it runs: the size of an
// operand or a result depends on data.
func (c *call) isDynamic() bool { return len(c.Regions) == 0 && !c.static }

// placeInterface places parameters and weights.
func (l *lowering) placeInterface() error {
	for i, v := range l.program.Body.Params {
		n, err := l.bytesOf(v)
		if err != nil {
			return fmt.Errorf("input: %w", err)
		}
		l.of(v).place = place{storage: l.make(storage{name: v.Name, space: plan.SpaceInput, arg: i, size: n}), size: n}
	}
	for _, v := range l.program.Weights {
		n, err := l.bytesOf(v)
		if err != nil {
			return fmt.Errorf("weight: %w", err)
		}
		l.of(v).place = place{storage: l.make(storage{name: v.Name, space: plan.SpaceWeight, size: n, weight: int32(v.ID)}), size: n}
	}
	return nil
}

// placeResults puts each result of call k into a view of an operand, the
// bytes of a donated operand, the storage that its region returns it in, or a
// storage of its own. In-place decisions are made here.
func (l *lowering) placeResults(k int) error {
	c := &l.calls[k]
	if c.Op.Loop {
		return l.placeLoop(k)
	}
	for r, v := range c.Results {
		if v == nil {
			continue
		}
		if !l.isStatic(v) {
			l.placeDynamic(v)
			l.yieldDynamic(c, r)
			continue
		}
		if err := l.placeResult(k, r, v); err != nil {
			return err
		}
	}
	return nil
}

// placeResult places result r of call k, v, whose size is known.
func (l *lowering) placeResult(k, r int, v *ir.Value) error {
	n, err := l.bytesOf(v)
	if err != nil {
		return err
	}
	c, to := &l.calls[k], l.of(v)
	if c.Op.Branch {
		l.placeBranched(k, r, v, n)
		return nil
	}
	arg, kind, offset := l.bytesFor(k, r)
	inPlace := arg >= 0 && kind != op.View
	var from place
	if arg >= 0 {
		from = l.of(c.Args[arg].Value).place
	}
	if inPlace && !l.takes(k, arg, r, kind) {
		l.decline(k, arg, "one thread would compute it there")
		inPlace, arg = false, -1
	}
	switch {
	case to.yielded.storage != nil && kind == op.View && arg >= 0:
		return fmt.Errorf("BUG: region result %q is a view", v.Name)
	case to.yielded.storage != nil && !(inPlace && n > 0 && from.startsAt(to.yielded)):
		if inPlace && to.yielded.storage.space != plan.SpaceSlot {
			l.decline(k, arg, "the result belongs in the bytes that the branches share")
		}
		to.place = place{storage: to.yielded.storage, offset: to.yielded.offset, size: n}
	case inPlace && n == 0:
		// Nothing to save, and no bytes tell two outputs apart that would lie
		// in them.
		to.place = l.newStorage(v, n)
	case inPlace && to.isOutput && !from.isOutput(n):
		l.decline(k, arg, "the output needs a buffer of its own, of its size")
		to.place = l.newStorage(v, n)
	case inPlace && l.isForeign(to.carried, from):
		l.decline(k, arg, "the loop carries another value in its bytes")
		to.place = l.newStorage(v, n)
	case arg >= 0:
		to.place = place{storage: from.storage, offset: from.offset + int64(offset), size: n}
		from.storage.output = from.storage.output || to.isOutput
		l.list(plan.InPlace{Call: k, Operand: arg, Result: r, Value: v.Name,
			Of: c.Args[arg].Value.Name, Kind: plan.AliasKind(kind.String()), Bytes: n})
	default:
		to.place = l.newStorage(v, n)
	}
	return nil
}

// findOutputs finds the values whose storage has to be a whole buffer.
func (l *lowering) findOutputs() {
	for _, v := range l.program.Body.Results {
		root, _ := l.rootOf(v)
		l.of(root).isOutput = true
	}
}

// takes reports whether result r of call k, which may lie in an operand by a
// rule of this kind, is put there: one that one thread computes is where it
// computes all steps, in as much time, and where the least memory is asked for.
func (l *lowering) takes(k, arg, r int, kind op.AliasKind) bool {
	switch kind {
	case op.Permute:
		return l.leastMemory || l.calls[k].sig.IsShared(arg, r)
	case op.Narrow:
		return l.leastMemory || l.oneThread
	}
	return true
}

// isOutput reports whether the first n bytes of the place can be returned as a
// result of the program: all bytes of a storage, or at least half of those of
// an input, from the first one on.
func (p place) isOutput(n int64) bool {
	if p.storage.space == plan.SpaceInput {
		return p.offset == 0 && 2*n >= p.storage.size
	}
	return p.isWhole() && n == p.size
}

// isWhole reports whether the place is all bytes of its storage.
func (p place) isWhole() bool { return p.offset == 0 && p.size == p.storage.size }

// startsAt reports whether both places have the same first byte.
func (p place) startsAt(q place) bool { return p.storage == q.storage && p.offset == q.offset }

// alias is the answer of bytesFor, once it was asked.
type alias struct {
	known       bool
	kind        op.AliasKind
	arg, offset int
}

// bytesFor returns the operand of call k in whose bytes result r lies, -1 for
// none.
func (l *lowering) bytesFor(k, r int) (arg int, kind op.AliasKind, offset int) {
	if !l.calls[k].lies {
		return -1, 0, 0
	}
	a := &l.aliases[l.calls[k].first+r]
	if !a.known {
		a.known = true
		a.arg, a.kind, a.offset = l.findBytes(k, r)
	}
	return a.arg, a.kind, a.offset
}

// mayLie reports whether, for some types, a result of the call lies in the
// bytes of an operand.
func mayLie(c *ir.Call) bool {
	return slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return a.Donate }) ||
		slices.ContainsFunc(c.Op.Alias.Rules(), func(r op.Rule) bool { return r.Kind == op.View })
}

func (l *lowering) findBytes(k, r int) (arg int, kind op.AliasKind, offset int) {
	c := &l.calls[k]
	if !c.static {
		return -1, 0, 0 // the places are decided when the call runs
	}
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		kind, offset := c.sig.AliasOf(i, r)
		if kind == 0 && a.Donate {
			kind = c.sig.AliasAlone(i, r)
		}
		if kind == op.View || kind != 0 && a.Donate {
			return i, kind, offset
		}
	}
	return -1, 0, 0
}

// list notes that a value lies in the bytes of another one.
func (l *lowering) list(p plan.InPlace) {
	if l.listing {
		l.inPlace = append(l.inPlace, p)
	}
}

// decline notes that no result is put into the bytes of an operand of call k.
func (l *lowering) decline(k, arg int, reason string) {
	if !l.listing {
		return
	}
	c := &l.calls[k]
	v := c.Args[arg].Value
	l.declined = append(l.declined, plan.Declined{Call: k, Op: c.Op.Name, Node: c.Node, Operand: arg,
		Value: v.Name, Reason: reason, Bytes: l.of(v).size})
}

// make makes a storage. Each is made for one value, or for a slot.
func (l *lowering) make(s storage) *storage {
	if len(l.made) == cap(l.made) {
		panic("BUG: exec: more storages than values")
	}
	l.made = append(l.made, s)
	return &l.made[len(l.made)-1]
}

// newStorage returns all of a new storage of the arena, which is made for v.
func (l *lowering) newStorage(v *ir.Value, size int64) place {
	s := l.make(storage{name: v.Name, space: plan.SpaceArena, size: size, id: -1, owner: v, output: l.of(v).isOutput})
	l.storages = append(l.storages, s)
	return place{storage: s, size: size}
}

// placeOutputs moves the storage of each output into the output's own buffer,
// which is free until its last value is written. The storage of a donated
// input stays: the output comes back in the input's bytes.
func (l *lowering) placeOutputs() {
	for i, v := range l.program.Body.Results {
		at := l.of(v).place
		if at.storage.space != plan.SpaceArena && at.storage.space != plan.SpaceOwn {
			continue
		}
		if !at.isWhole() {
			panic("BUG: exec: output " + v.Name + " is a part of a storage")
		}
		at.storage.space, at.storage.arg = plan.SpaceOutput, i
	}
}

// problem returns the arena's placement problem. The next lowering changes it.
func (l *lowering) problem() *plan.Problem {
	p := &l.arena
	p.Align, p.Storages = plan.DefaultAlign, p.Storages[:0]
	for _, s := range l.storages {
		if s.space != plan.SpaceArena {
			continue
		}
		s.id = len(p.Storages)
		p.Storages = append(p.Storages, plan.Storage{Name: s.name, Size: s.size, Pieces: l.pieces[s.first : s.first+s.count]})
	}
	return p
}

// settle takes the answer to the problem: storages stay where they are now.
func (l *lowering) settle(bases []int64) {
	for i := range l.made {
		s := &l.made[i]
		if s.kind = spaceOf(s.space); s.kind == arenaSpace && !s.joined {
			s.start = bases[s.id]
		}
	}
}
