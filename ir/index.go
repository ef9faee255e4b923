package ir

import "iter"

// Index numbers the calls of a program, in the order of [Program.Walk], and
// says by which of them each value is defined. It describes the program as it
// was when the index was made, and requires V1 to V3 of [Verify]. It is not
// changed after that, so many goroutines may read it.
type Index struct {
	Calls []Site // by number
	def   []int  // by ID: the number of the call, -1 for none
}

// Site is a call where it stands in its program.
type Site struct {
	*Call
	Block *Block
	End   int // the number after those of the calls in its regions
}

// NewIndex numbers the calls of the program.
func NewIndex(p *Program) *Index {
	x := &Index{def: make([]int, p.NumIDs())}
	for id := range x.def {
		x.def[id] = -1
	}
	x.add(p.Body)
	return x
}

func (x *Index) add(b *Block) {
	for _, c := range b.Calls {
		k := len(x.Calls)
		x.Calls = append(x.Calls, Site{Call: c, Block: b})
		for v := range c.Defs() {
			x.def[v.ID] = k
		}
		for _, region := range c.Regions {
			x.add(region)
		}
		x.Calls[k].End = len(x.Calls)
	}
}

// Def returns the number of the call that defines v, as a result or as a
// parameter of a region; -1 for parameters of the program and weights.
func (x *Index) Def(v *Value) int { return x.def[v.ID] }

// LoopOf returns the number of the loop of whose region v is a parameter.
func (x *Index) LoopOf(v *Value) (k int, ok bool) {
	k = x.def[v.ID]
	return k, k >= 0 && v.Kind == Param && x.Calls[k].Op.Loop
}

// IsInside reports whether v exists only in the regions of call k.
func (x *Index) IsInside(v *Value, k int) bool {
	d := x.def[v.ID]
	return d > k && d < x.Calls[k].End || d == k && v.Kind == Param
}

// Defs returns the values that the call defines: its wanted results, then the
// parameters of its regions.
func (c *Call) Defs() iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		for _, v := range c.Results {
			if v != nil && !yield(v) {
				return
			}
		}
		for _, region := range c.Regions {
			for _, v := range region.Params {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// OperandIDs returns the IDs of the operands that are present.
func (c *Call) OperandIDs() []int {
	var ids []int
	for _, a := range c.Args {
		if a.Value != nil {
			ids = append(ids, a.Value.ID)
		}
	}
	return ids
}

// Uses returns the values that the call uses: its operands, and values used
// in its regions. A value occurs once for each of its uses.
func (c *Call) Uses() iter.Seq[*Value] {
	return func(yield func(*Value) bool) { c.eachUse(yield) }
}

// Uses returns the values that the calls of the block use, and those that it
// returns. A value comes once for each of its uses.
func (b *Block) Uses() iter.Seq[*Value] {
	return func(yield func(*Value) bool) { b.eachUse(yield) }
}

func (c *Call) eachUse(yield func(*Value) bool) bool {
	for _, a := range c.Args {
		if a.Value != nil && !yield(a.Value) {
			return false
		}
	}
	for _, region := range c.Regions {
		if !region.eachUse(yield) {
			return false
		}
	}
	return true
}

func (b *Block) eachUse(yield func(*Value) bool) bool {
	for _, c := range b.Calls {
		if !c.eachUse(yield) {
			return false
		}
	}
	for _, v := range b.Results {
		if !yield(v) {
			return false
		}
	}
	return true
}
