package check

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
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
	if v := c.lives(); v != nil {
		return v
	}
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
	if fault := c.figure("arena_bytes", c.plan.ArenaBytes, c.arena()); fault != nil {
		return fault
	}
	io, fault := c.io()
	if fault != nil {
		return fault
	}
	var weights int64
	for _, v := range c.program.Weights {
		if fault := c.add(&weights, c.of(v)); fault != nil {
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

// add adds the bytes of a value to a sum.
func (c *checker) add(sum *int64, x *value) *Violation {
	if x.size > plan.MaxBytes-*sum {
		return c.fault(Figure, x, "a sum of sizes above the largest possible", fmt.Sprintf("at most %d", int64(plan.MaxBytes)))
	}
	*sum += x.size
	return nil
}

// io returns the bytes of inputs and outputs.
func (c *checker) io() (sum int64, fault *Violation) {
	for _, v := range c.program.Body.Params {
		if fault := c.add(&sum, c.of(v)); fault != nil {
			return 0, fault
		}
	}
	for _, v := range c.program.Body.Results {
		if x := c.of(v); x.place.kind == output {
			if fault := c.add(&sum, x); fault != nil {
				return 0, fault
			}
		}
	}
	return sum, nil
}

// arena returns the bytes of the arena, up to the end of the last block that a
// value touches.
func (c *checker) arena() (end int64) {
	for _, x := range c.ordered {
		if x.place.kind == arena && x.size > 0 {
			_, hi := blocks(x.place)
			end = max(end, hi)
		}
	}
	return end
}

// packed returns what packing adds to the bytes of the weights, of which there
// are so many.
func (c *checker) packed(weights int64) (int64, *Violation) {
	var sum int64
	rest := c.program.Weights
	for i := range c.plan.Packed {
		p := &c.plan.Packed[i]
		at := slices.IndexFunc(rest, func(v *ir.Value) bool { return v.ID == p.ID && v.Name == p.Weight })
		if at < 0 {
			return 0, c.fault(Document, nil, fmt.Sprintf("%q with id %d as a packed weight", p.Weight, p.ID), "weights of the program, in its order, each once")
		}
		x := c.of(rest[at])
		rest = rest[at+1:]
		if p.Unloaded != 0 && p.Unloaded != x.size {
			return 0, c.fault(Figure, x, fmt.Sprintf("%d bytes unloaded by packing", p.Unloaded), fmt.Sprintf("0 or %d", x.size))
		}
		if p.Bytes > plan.MaxBytes-weights-max(sum, 0) {
			return 0, c.fault(Figure, x, "a sum of sizes above the largest possible", fmt.Sprintf("at most %d", int64(plan.MaxBytes)))
		}
		sum += p.Bytes - p.Unloaded
	}
	return sum, nil
}

// scratch proves scratch_per_thread; that scratch_bytes is its product with
// the number of threads is a matter of the document.
func (c *checker) scratch() *Violation {
	var most int64
	for k := range c.index.Calls {
		scratch := c.scratchOf(k)
		most = max(most, scratch)
		sig := c.sigs.Of(k)
		if sig.Def.Scratch == nil || !sig.IsStatic() {
			continue
		}
		n, err := sig.Def.Scratch(sig)
		if err != nil || scratch < int64(n) {
			c.step = c.stepOf[k]
			if err != nil {
				return c.fault(Figure, nil, "no scratch size: "+err.Error(), "one")
			}
			return c.fault(Figure, nil, fmt.Sprintf("%d bytes of scratch", scratch), fmt.Sprintf("at least the %d that the operator declares", n))
		}
	}
	if c.layout != nil {
		return c.figure("scratch_per_thread", c.layout.ScratchPerThread, most)
	}
	return c.figure("scratch_per_thread", c.plan.ScratchPerThread, most)
}

// scratchOf returns the scratch that the plan has for call k.
func (c *checker) scratchOf(k int) int64 {
	if c.layout != nil {
		return c.layout.Scratch[k]
	}
	return c.plan.Steps[c.stepOf[k]].Scratch
}

// blocks returns the range of the blocks that a place touches.
func blocks(p place) (lo, hi int64) {
	const mask = plan.DefaultAlign - 1
	return p.lo &^ mask, (p.hi + mask) &^ mask
}

// becomesResults reports whether a result of a call lies in bytes of an
// operand. It may not where a result beside these may be written while the
// operand is read: then the operand lives until all are written.
func (c *checker) becomesResults(call *ir.Call, operand place) bool {
	some := false
	for _, v := range call.Results {
		if v == nil {
			continue
		}
		to := c.of(v).place
		is := c.overlap(operand, to)
		if !is && to.lo < to.hi && len(call.Regions) == 0 {
			return false
		}
		some = some || is
	}
	return some
}

// live derives the life of every value that a call defines.
func (c *checker) live() {
	for k, call := range c.index.Calls {
		reads := plan.Time(2 * c.stepOf[k])
		for _, v := range call.Results {
			if v != nil {
				x := c.of(v)
				x.start, x.end = reads+1, max(x.end, reads+2)
			}
		}
		for _, a := range call.Args {
			if a.Value == nil {
				continue
			}
			x, end := c.of(a.Value), reads+2
			if !c.partly[k] && c.becomesResults(call.Call, x.place) {
				end = reads + 1
			}
			x.end = max(x.end, end)
		}
	}
	for k, call := range c.index.Calls {
		if call.Op.Loop {
			c.loopEnds(k, call.Call)
		}
	}
	// Outer calls come first: a value that an inner branch returns lives as
	// long as the outer one needs it.
	for _, call := range c.index.Calls {
		for _, region := range call.Regions {
			if call.Op.Loop {
				continue
			}
			for r, v := range call.Results {
				if v != nil {
					y := c.of(region.Results[r])
					y.end = max(y.end, c.of(v).end)
				}
			}
		}
	}
}
