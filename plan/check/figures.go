package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// figures proves rule 9.
func (c *checker) figures() *Violation {
	if v := c.sums(); v != nil {
		return v
	}
	if v := c.scratch(); v != nil {
		return v
	}
	c.live()
	return c.peak()
}

// figure compares one figure of the document.
func (c *checker) figure(name string, got, want int64) *Violation {
	if got == want {
		return nil
	}
	return c.fault(Figure, nil, fmt.Sprintf("%s %d", name, got), fmt.Sprint(want))
}

// sums proves the bytes of arena, inputs, outputs and weights.
func (c *checker) sums() *Violation {
	var arena, io, weights int64
	add := func(sum *int64, x *value) *Violation {
		if x.size > plan.MaxBytes-*sum {
			return c.fault(Figure, x, "a sum of sizes above the largest possible", fmt.Sprintf("at most %d", int64(plan.MaxBytes)))
		}
		*sum += x.size
		return nil
	}
	for _, x := range c.ordered {
		if x.place.Space == plan.SpaceArena && x.size > 0 {
			_, hi := blocks(x.place)
			arena = max(arena, hi)
		}
	}
	if c.plan.ArenaBytes < arena {
		return c.fault(Figure, nil, fmt.Sprintf("arena_bytes %d", c.plan.ArenaBytes), fmt.Sprintf("at least %d, the blocks of the values in it", arena))
	}
	for _, v := range c.program.Body.Params {
		if fault := add(&io, c.values[v]); fault != nil {
			return fault
		}
	}
	for _, v := range c.program.Body.Results {
		if x := c.values[v]; x.place.Space == plan.SpaceOutput {
			if fault := add(&io, x); fault != nil {
				return fault
			}
		}
	}
	for _, v := range c.program.Weights {
		if fault := add(&weights, c.values[v]); fault != nil {
			return fault
		}
	}
	if fault := c.figure("io_bytes", c.plan.IOBytes, io); fault != nil {
		return fault
	}
	packed, fault := c.packed(weights)
	if fault != nil {
		return fault
	}
	weights += packed
	return c.figure("weight_bytes", c.plan.WeightBytes, weights)
}

// packed returns what packing adds to the bytes of the weights, of which there are so many.
func (c *checker) packed(weights int64) (int64, *Violation) {
	byID := map[int]*value{}
	for _, v := range c.program.Weights {
		byID[v.ID] = c.values[v]
	}
	var sum int64
	for i := range c.plan.Packed {
		p := &c.plan.Packed[i]
		x := byID[p.ID]
		if x == nil || x.Name != p.Weight {
			return 0, c.fault(Document, nil, fmt.Sprintf("%q with id %d as a packed weight", p.Weight, p.ID), "a weight of the program, once")
		}
		delete(byID, p.ID)
		if p.Spared != 0 && p.Spared != x.size {
			return 0, c.fault(Figure, x, fmt.Sprintf("%d bytes spared by packing", p.Spared), fmt.Sprintf("0 or %d", x.size))
		}
		if p.Bytes > plan.MaxBytes-weights-max(sum, 0) {
			return 0, c.fault(Figure, x, "a sum of sizes above the largest possible", fmt.Sprintf("at most %d", int64(plan.MaxBytes)))
		}
		sum += p.Bytes - p.Spared
	}
	return sum, nil
}

// scratch proves scratch_per_thread; that scratch_bytes is its product with
// the number of threads is a matter of the document.
func (c *checker) scratch() *Violation {
	var most int64
	for k, sig := range c.sigs {
		step := &c.plan.Steps[c.stepOf[k]]
		most = max(most, step.Scratch)
		if sig.Def.Scratch == nil || !sig.IsStatic() {
			continue
		}
		n, err := sig.Def.Scratch(sig)
		if err != nil || step.Scratch < int64(n) {
			c.step = c.stepOf[k]
			if err != nil {
				return c.fault(Figure, nil, "no scratch size: "+err.Error(), "one")
			}
			return c.fault(Figure, nil, fmt.Sprintf("%d bytes of scratch", step.Scratch), fmt.Sprintf("at least the %d that the operator declares", n))
		}
	}
	return c.figure("scratch_per_thread", c.plan.ScratchPerThread, most)
}

// blocks returns the range of the blocks that the bytes touch.
func blocks(b Bytes) (lo, hi int64) {
	const mask = plan.DefaultAlign - 1
	return b.Lo &^ mask, (b.Hi + mask) &^ mask
}

// live derives the life of every value that a call gives.
func (c *checker) live() {
	for k, call := range c.calls {
		reads := plan.Time(2 * c.stepOf[k])
		for _, v := range call.Results {
			if v != nil {
				x := c.values[v]
				x.start, x.end = reads+1, max(x.end, reads+2)
			}
		}
		for _, a := range call.Args {
			if a.Value == nil {
				continue
			}
			x, end := c.values[a.Value], reads+2
			for _, v := range call.Results {
				if v != nil && overlap(x.place, c.values[v].place) {
					end = reads + 1
				}
			}
			x.end = max(x.end, end)
		}
	}
	for k, call := range c.calls {
		if call.Op.Loop {
			c.loopEnds(k, call)
		}
	}
	// Outer calls come first: what an inner branch returns lives as long as
	// what the outer one does with it.
	for _, call := range c.calls {
		for _, region := range call.Regions {
			if call.Op.Loop {
				continue
			}
			for r, v := range call.Results {
				if v != nil {
					y := c.values[region.Results[r]]
					y.end = max(y.end, c.values[v].end)
				}
			}
		}
	}
}

// level is how many bytes live from a moment on until the next level.
type level struct {
	at    plan.Time
	bytes int64
}

// levels returns the bytes of the blocks of the arena in which one of the
// values lives, over time.
func levels(values []*value) []level {
	type event struct {
		at     plan.Time
		add    int
		lo, hi int64
	}
	var events []event
	var edges []int64
	for _, x := range values {
		if x.place.Space == plan.SpaceArena && x.size > 0 {
			lo, hi := blocks(x.place)
			events = append(events, event{x.start, 1, lo, hi}, event{x.end, -1, lo, hi})
			edges = append(edges, lo, hi)
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	slices.Sort(edges)
	edges = slices.Compact(edges)
	held := make([]int, len(edges)) // values that live in the bytes from each edge to the next
	var out []level
	var bytes int64
	for i, e := range events {
		first, _ := slices.BinarySearch(edges, e.lo)
		for n := first; edges[n] < e.hi; n++ {
			before := held[n] > 0
			held[n] += e.add
			if after := held[n] > 0; after && !before {
				bytes += edges[n+1] - edges[n]
			} else if before && !after {
				bytes -= edges[n+1] - edges[n]
			}
		}
		if i+1 == len(events) || events[i+1].at != e.at {
			out = append(out, level{e.at, bytes})
		}
	}
	return out
}

// peak proves the peak and the lower bound.
func (c *checker) peak() *Violation {
	c.step = -1
	profile := levels(c.ordered)
	var most int64
	for _, l := range profile {
		most = max(most, l.bytes)
	}
	if fault := c.figure("peak bytes", c.plan.Peak.Bytes, most); fault != nil {
		return fault
	}
	if c.plan.LowerBoundBytes > most {
		return c.fault(Figure, nil, fmt.Sprintf("lower_bound_bytes %d", c.plan.LowerBoundBytes), fmt.Sprintf("at most the %d that live at once", most))
	}
	return c.witness()
}

// witness proves that the values which the peak lists live at one moment of
// its step, in as many bytes as it says.
func (c *checker) witness() *Violation {
	peak := &c.plan.Peak
	byID := make(map[int]*value, len(c.ordered))
	for _, x := range c.ordered {
		byID[x.ID] = x
	}
	var listed []*value
	start, end := plan.Time(2*peak.Step), plan.Time(2*peak.Step+2) // moments at which all of them live
	for _, id := range peak.Live {
		x := byID[id] // the document lists values of the arena only
		start, end = max(start, x.start), min(end, x.end)
		listed = append(listed, x)
	}
	if start >= end {
		return c.fault(Figure, nil, fmt.Sprintf("values at the peak in step %d that do not live at once", peak.Step), "ones that do")
	}
	// All live at the start, so the level there is that of all of them.
	var bytes int64
	for _, l := range levels(listed) {
		bytes = max(bytes, l.bytes)
	}
	return c.figure("values at the peak with bytes", bytes, peak.Bytes)
}

// claims proves rule 10.
func (c *checker) claims() *Violation {
	for i := range c.plan.InPlace {
		if v := c.claim(&c.plan.InPlace[i]); v != nil {
			return v
		}
	}
	return nil
}

func (c *checker) claim(p *plan.InPlace) *Violation {
	c.step = -1
	if p.Call >= len(c.calls) {
		return c.fault(Claim, nil, fmt.Sprintf("call %d", p.Call), fmt.Sprintf("one of %d", len(c.calls)))
	}
	call := c.calls[p.Call]
	c.step = c.stepOf[p.Call]
	if p.Operand >= len(call.Args) || p.Result >= len(call.Results) || call.Args[p.Operand].Value == nil || call.Results[p.Result] == nil {
		return c.fault(Claim, nil, fmt.Sprintf("operand %d and result %d", p.Operand, p.Result), "those of the call")
	}
	x, y := c.values[call.Results[p.Result]], c.values[call.Args[p.Operand].Value]
	if p.Value != x.Name || p.Of != y.Name || p.Bytes != x.size {
		return c.fault(Claim, x, fmt.Sprintf("%q in %q, %d bytes", p.Value, p.Of, p.Bytes), fmt.Sprintf("%q in %q, %d bytes", x.Name, y.Name, x.size))
	}
	kind, offset := c.sigs[p.Call].AliasOf(p.Operand, p.Result)
	if plan.AliasKind(kind.String()) != p.Kind {
		return c.fault(Claim, x, fmt.Sprintf("%s of operand %d (%s)", p.Kind, p.Operand, y), fmt.Sprintf("%s, as the operator has it", kind))
	}
	if kind == 0 || x.place.space() != y.place.space() || x.place.Lo != y.place.Lo+int64(offset) {
		return c.fault(Claim, x, fmt.Sprintf("%s in %s", x, x.place), fmt.Sprintf("it %d bytes into %s, in %s", offset, y, y.place))
	}
	return nil
}
