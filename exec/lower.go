package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// place is where a value lives: a byte offset in a storage.
type place struct {
	storage *storage
	offset  int64
	size    int64
}

// storage is a range of bytes that values share: views, chains of in-place results, the
// results of a branch.
type storage struct {
	name   string
	space  plan.Space
	arg    int // input or output number for those spaces
	size   int64
	pieces []plan.Piece // arena only
	id     int          // index in the problem, arena only
	weight *ir.Value    // weight only
}

// lowering turns a final program into a placement problem and its answer into
// places. Time is in half-steps: call k, in preorder, reads at 2k and writes
// at 2k+1.
type lowering struct {
	program  *ir.Program
	known    func(*ir.Value) ([]byte, bool)
	calls    []*ir.Call
	sigs     []*op.Sig
	index    map[*ir.Call]int
	places   map[*ir.Value]place
	yields   map[*ir.Value]*storage // values that a region returns: the storage of the call's result
	ends     map[*ir.Value]plan.Time
	possible map[*ir.Value]ir.Possible
	dynamic  map[*ir.Value]int      // values whose size depends on data, numbered
	freed    map[*ir.Call][]int     // dynamic values whose own buffers are given back after the call
	left     map[*ir.Block][]int    // dynamic values whose own buffers are given back at the end of the region
	loopOf   map[*ir.Value]int      // parameters of a loop's region: its call
	carriers map[*storage]int       // storages of what loops carry: their calls
	carried  map[*ir.Value]*storage // what a loop's region carries on: the storage it ends in
	outputs  map[*ir.Value]bool     // values that the program's results are, or are views of
	storages []*storage
	inPlace  []plan.InPlace
	declined []plan.Declined
}

func lower(p *ir.Program, known func(*ir.Value) ([]byte, bool)) (*lowering, error) {
	l := &lowering{program: p, known: known, possible: ir.PossibleOf(p, known), index: map[*ir.Call]int{}, places: map[*ir.Value]place{},
		yields: map[*ir.Value]*storage{}, ends: map[*ir.Value]plan.Time{}, dynamic: map[*ir.Value]int{},
		freed: map[*ir.Call][]int{}, left: map[*ir.Block][]int{}, loopOf: map[*ir.Value]int{}, carriers: map[*storage]int{}, carried: map[*ir.Value]*storage{}, outputs: map[*ir.Value]bool{}}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		l.index[c] = len(l.calls)
		l.calls = append(l.calls, c)
		l.sigs = append(l.sigs, c.Sig(known))
	})
	if err := l.placeInterface(); err != nil {
		return nil, err
	}
	if err := l.checkFinal(); err != nil {
		return nil, err
	}
	l.findOutputs()
	for k, c := range l.calls {
		if err := l.placeResults(k, c); err != nil {
			return nil, fmt.Errorf("%s: %w", describe(c), err)
		}
	}
	for _, c := range l.calls {
		if c.Op.Loop {
			if err := l.checkCarried(c); err != nil {
				return nil, err
			}
		}
	}
	l.placeOutputs()
	l.collectEnds()
	l.endDynamic(p.Body)
	l.collectPieces()
	return l, nil
}

func describe(c *ir.Call) string {
	if c.Node != "" {
		return fmt.Sprintf("node %q (%s)", c.Node, c.Op.Name)
	}
	return c.Op.Name
}

func bytesOf(v *ir.Value) (int64, error) {
	if !v.Type.IsStatic() {
		return 0, fmt.Errorf("value %q has type %s, want a size: %w", v.Name, v.Type, op.ErrUnsupported)
	}
	n, err := v.Type.Bytes()
	return int64(n), err
}

// isLate reports whether call k is bound when it runs: the size of an operand
// or a result depends on data.
func (l *lowering) isLate(k int) bool { return len(l.calls[k].Regions) == 0 && !l.sigs[k].IsStatic() }

// placeInterface gives parameters and weights their places.
func (l *lowering) placeInterface() error {
	for i, v := range l.program.Body.Params {
		n, err := bytesOf(v)
		if err != nil {
			return fmt.Errorf("input: %w", err)
		}
		l.places[v] = place{&storage{name: v.Name, space: plan.SpaceInput, arg: i, size: n}, 0, n}
	}
	for _, v := range l.program.Weights {
		n, err := bytesOf(v)
		if err != nil {
			return fmt.Errorf("weight: %w", err)
		}
		l.places[v] = place{&storage{name: v.Name, space: plan.SpaceWeight, size: n, weight: v}, 0, n}
	}
	return nil
}

// placeResults puts each result of call k into a view of an operand, the
// bytes of a donated operand, the storage that its region returns it in, or a
// storage of its own.
func (l *lowering) placeResults(k int, c *ir.Call) error {
	if c.Op.Loop {
		return l.placeLoop(k, c)
	}
	for r, v := range c.Results {
		if v == nil {
			continue
		}
		if !v.Type.IsStatic() {
			l.placeDynamic(v)
			continue
		}
		n, err := bytesOf(v)
		if err != nil {
			return err
		}
		arg, kind, offset := l.bytesFor(k, c, r)
		yield := l.yields[v]
		switch {
		case yield != nil:
			if arg >= 0 && kind != op.View {
				l.decline(k, c, arg, "the result belongs in the bytes that the branches share")
			}
			if kind == op.View && arg >= 0 {
				return fmt.Errorf("BUG: region result %q is a view", v.Name)
			}
			l.places[v] = place{yield, 0, n}
		case arg >= 0 && kind != op.View && n == 0:
			// Nothing to save, and no bytes tell two outputs apart that would lie in them.
			l.places[v] = place{l.newStorage(v.Name, n), 0, n}
		case arg >= 0 && kind != op.View && l.outputs[v] && !l.isWhole(c.Args[arg].Value):
			l.decline(k, c, arg, "the output needs a buffer of its own, and the operand is a part of one")
			l.places[v] = place{l.newStorage(v.Name, n), 0, n}
		case arg >= 0 && kind != op.View && l.isForeign(v, l.places[c.Args[arg].Value].storage):
			l.decline(k, c, arg, "the loop carries another value in its bytes")
			l.places[v] = place{l.newStorage(v.Name, n), 0, n}
		case arg >= 0:
			from := l.places[c.Args[arg].Value]
			l.places[v] = place{from.storage, from.offset + int64(offset), n}
			l.inPlace = append(l.inPlace, plan.InPlace{Call: k, Operand: arg, Result: r, Value: v.Name,
				Of: c.Args[arg].Value.Name, Kind: plan.AliasKind(kind.String()), Bytes: n})
		default:
			l.places[v] = place{l.newStorage(v.Name, n), 0, n}
		}
	}
	for _, region := range c.Regions {
		for i, y := range region.Results {
			if i >= len(c.Results) || c.Results[i] == nil {
				continue
			}
			if to := l.places[c.Results[i]]; c.Results[i].Type.IsStatic() || to.storage.space == plan.SpaceArena {
				l.yields[y] = to.storage
			}
		}
	}
	return nil
}

// findOutputs finds the values whose storage has to be a whole buffer.
func (l *lowering) findOutputs() {
	for _, v := range l.program.Body.Results {
		root, _ := l.rootOf(v)
		l.outputs[root] = true
	}
}

// isWhole reports whether v is all bytes of its storage.
func (l *lowering) isWhole(v *ir.Value) bool {
	at := l.places[v]
	return at.offset == 0 && at.size == at.storage.size
}

// bytesFor returns the operand whose bytes result r lies in, -1 for none.
func (l *lowering) bytesFor(k int, c *ir.Call, r int) (arg int, kind op.AliasKind, offset int) {
	if !l.sigs[k].IsStatic() {
		return -1, 0, 0 // what lies where is decided when the call runs
	}
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		kind, offset := l.sigs[k].AliasOf(i, r)
		if kind == op.View || kind != 0 && a.Donate {
			return i, kind, offset
		}
	}
	return -1, 0, 0
}

func (l *lowering) decline(k int, c *ir.Call, arg int, reason string) {
	v := c.Args[arg].Value
	l.declined = append(l.declined, plan.Declined{Call: k, Op: c.Op.Name, Node: c.Node, Operand: arg,
		Value: v.Name, Reason: reason, Bytes: l.places[v].size})
}

func (l *lowering) newStorage(name string, size int64) *storage {
	c := &storage{name: name, space: plan.SpaceArena, size: size, id: -1}
	l.storages = append(l.storages, c)
	return c
}

// placeOutputs moves the storage of each output into the output's own buffer,
// which is free until its last value is written. The storage of a donated
// input stays: the output comes back in the input's bytes.
func (l *lowering) placeOutputs() {
	for i, v := range l.program.Body.Results {
		at := l.places[v]
		if at.storage.space != plan.SpaceArena && at.storage.space != plan.SpaceOwn {
			continue
		}
		if !l.isWhole(v) {
			panic("BUG: exec: output " + v.Name + " is a part of a storage")
		}
		at.storage.space, at.storage.arg = plan.SpaceOutput, i
	}
}

// collectEnds finds until when each value is read. An operand whose bytes
// become the result's ends when the call reads it; any other lives until the
// results are written.
func (l *lowering) collectEnds() {
	for k, c := range l.calls {
		for i, a := range c.Args {
			if a.Value == nil {
				continue
			}
			end := plan.Time(2*k + 2)
			if l.becomesResult(c, i) {
				end--
			}
			l.ends[a.Value] = max(l.ends[a.Value], end)
		}
	}
	// Loops first: what a branch returns lives as long as the call's result,
	// which a loop that follows may read in every round.
	for _, loops := range []bool{true, false} {
		for _, c := range l.calls {
			if len(c.Regions) > 0 && c.Op.Loop == loops {
				l.endRegions(c)
			}
		}
	}
}

// endRegions finds until when what goes in and out of the regions of a call is
// there.
func (l *lowering) endRegions(c *ir.Call) {
	end := plan.Time(2*l.lastInside(c) + 2)
	for _, r := range c.Results {
		if r != nil {
			// It is there when a region ends, whoever reads it then.
			l.ends[r] = max(l.ends[r], end)
		}
	}
	if c.Op.Loop {
		l.endLoop(c, end)
		return
	}
	for _, region := range c.Regions {
		for i, y := range region.Results {
			if r := c.Results[i]; r != nil {
				// A region's result lives on as the call's result.
				l.ends[y] = max(l.ends[y], l.ends[r])
			}
		}
	}
}

// lastInside returns the last of the call and the calls in its regions.
func (l *lowering) lastInside(c *ir.Call) int {
	last := l.index[c]
	for _, region := range c.Regions {
		for _, inner := range region.Calls {
			last = max(last, l.lastInside(inner))
		}
	}
	return last
}

// becomesResult reports whether a result of c lies in operand i's bytes.
func (l *lowering) becomesResult(c *ir.Call, i int) bool {
	from := l.places[c.Args[i].Value]
	for _, r := range c.Results {
		if r == nil {
			continue
		}
		at := l.places[r]
		if at.storage == from.storage && at.offset < from.offset+from.size && from.offset < at.offset+at.size {
			return true
		}
	}
	return false
}

// life returns when the bytes of v are needed.
func (l *lowering) life(v *ir.Value) (start, end plan.Time) {
	steps := plan.Time(2 * len(l.calls))
	loop, carried := l.loopOf[v]
	switch {
	case carried:
		start = plan.Time(2*loop + 1)
	case v.Kind != ir.Result:
		return 0, max(steps, 1)
	default:
		start = plan.Time(2*l.index[v.Def] + 1)
	}
	end = max(l.ends[v], start+1)
	if space := l.places[v].storage.space; space != plan.SpaceArena && space != plan.SpaceOwn {
		return start, max(end, steps)
	}
	return start, end
}

// collectPieces gives the arena's storages their pieces.
func (l *lowering) collectPieces() {
	for _, c := range l.calls {
		for _, v := range given(c) {
			at := l.places[v]
			if at.storage.space != plan.SpaceArena {
				continue
			}
			start, end := l.life(v)
			at.storage.pieces = append(at.storage.pieces, plan.Piece{Offset: at.offset, Size: at.size, Start: start, End: end})
		}
	}
}

// given returns the values that a call gives: its wanted results and the
// parameters of its regions.
func given(c *ir.Call) []*ir.Value {
	var list []*ir.Value
	for _, v := range c.Results {
		if v != nil {
			list = append(list, v)
		}
	}
	for _, region := range c.Regions {
		list = append(list, region.Params...)
	}
	return list
}

// problem returns the arena's placement problem.
func (l *lowering) problem() *plan.Problem {
	p := &plan.Problem{Align: plan.DefaultAlign}
	for _, c := range l.storages {
		if c.space != plan.SpaceArena {
			continue
		}
		c.id = len(p.Storages)
		p.Storages = append(p.Storages, plan.Storage{Name: c.name, Size: c.size, Pieces: c.pieces})
	}
	return p
}
