package ir

import "math"

// order numbers the calls of a program in the order in which they run, and
// holds who uses which value where. It requires V1 of [Verify] and no more.
type order struct {
	at   map[*Call]int // when the call starts
	in   map[*Call]*Block
	uses map[*Value][]use // in the order of their numbers
	def  map[*Value]definition
	site map[*Block]site // absent for the body of the program

	// steps give values: the parameters of a block when it starts, the results
	// of a call when it ends. first is the first step from which the values
	// that a call sees do not come.
	steps []step
	first map[*Call]int
}

// step is the start of a block or the end of a call.
type step struct {
	block *Block
	call  *Call
}

// use is one use of a value: as an operand of a call, or as a result of a
// block when call is nil.
type use struct {
	at    int
	block *Block
	call  *Call
}

// definition is where a value is given. Weights and the parameters of the
// program are given before the first call.
type definition struct {
	at    int
	block *Block
}

// site is the call that a block is a region of.
type site struct {
	call   *Call
	region int
}

func newOrder(p *Program) *order {
	o := &order{at: map[*Call]int{}, in: map[*Call]*Block{}, uses: map[*Value][]use{},
		def: map[*Value]definition{}, site: map[*Block]site{}, first: map[*Call]int{}}
	for _, v := range p.Weights {
		o.def[v] = definition{-1, p.Body}
	}
	o.number(p.Body, -1, 0)
	return o
}

// number numbers a block whose parameters are given at the given time and
// whose calls start at next; it returns the first number after it.
func (o *order) number(b *Block, params, next int) int {
	o.steps = append(o.steps, step{block: b})
	for _, v := range b.Params {
		o.def[v] = definition{params, b}
	}
	for _, c := range b.Calls {
		at := next
		o.at[c], o.in[c], o.first[c] = at, b, len(o.steps)
		for _, a := range c.Args {
			if a.Value != nil {
				o.uses[a.Value] = append(o.uses[a.Value], use{at, b, c})
			}
		}
		next++
		for i, r := range c.Regions {
			o.site[r] = site{c, i}
			next = o.number(r, at, next)
		}
		// A result exists once the regions have run.
		o.steps = append(o.steps, step{call: c})
		for _, v := range c.Results {
			if v != nil {
				o.def[v] = definition{next - 1, b}
			}
		}
	}
	for _, v := range b.Results {
		if v != nil {
			o.uses[v] = append(o.uses[v], use{at: next, block: b})
		}
	}
	return next + 1
}

// before reports whether the value exists when the call starts.
func (o *order) before(v *Value, c *Call) bool {
	d, ok := o.def[v]
	return !ok || d.at < o.at[c]
}

// usedAfter returns a use of v that may run after call c has started and is
// not an operand of c. Another branch of an if around c does not.
func (o *order) usedAfter(v *Value, c *Call) (use, bool) {
	for _, u := range o.uses[v] {
		if u.at > o.at[c] && !o.exclusive(u.block, o.in[c]) {
			return u, true
		}
	}
	return use{}, false
}

// exclusive reports whether the blocks are in different branches of one call,
// of which only one runs.
func (o *order) exclusive(a, b *Block) bool {
	if a == b {
		return false
	}
	branch := map[*Call]int{}
	for s, ok := o.site[a]; ok; s, ok = o.site[o.in[s.call]] {
		branch[s.call] = s.region
	}
	for s, ok := o.site[b]; ok; s, ok = o.site[o.in[s.call]] {
		if region, shared := branch[s.call]; shared {
			return region != s.region && s.call.Op.Branch
		}
	}
	return false
}

// loop returns the innermost region around the call that may run many times,
// nil when there is none.
func (o *order) loop(c *Call) *Block {
	for b := o.in[c]; b != nil; {
		s, ok := o.site[b]
		if !ok {
			return nil
		}
		if !s.call.Op.Branch {
			return b
		}
		b = o.in[s.call]
	}
	return nil
}

// within reports whether the value is given inside the block.
func (o *order) within(v *Value, outer *Block) bool {
	for b := o.def[v].block; b != nil; b = o.in[o.site[b].call] {
		if b == outer {
			return true
		}
	}
	return false
}

// unknownEnd is the end of a byte range whose size is not known.
const unknownEnd = math.MaxInt64
