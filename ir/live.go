package ir

import "sort"

// order numbers the calls of a program in the order in which they run, and
// records which calls and blocks use which value. It requires V1 of [Verify]
// and no more.
type order struct {
	at   map[*Call]int // when the call starts
	in   map[*Call]*Block
	uses map[*Value][]use // in the order of their numbers
	home map[*Value]*Block
	site map[*Block]site // absent for the body of the program

	// steps define values: the parameters of a block when it starts, the
	// results of a call when it ends. seen is the number of steps that have
	// defined values when the call starts.
	steps []step
	seen  map[*Call]int
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

// site is the call that a block is a region of.
type site struct {
	call   *Call
	region int
}

func newOrder(p *Program) *order {
	o := &order{at: map[*Call]int{}, in: map[*Call]*Block{}, uses: map[*Value][]use{},
		home: map[*Value]*Block{}, site: map[*Block]site{}, seen: map[*Call]int{}}
	o.number(p.Body, 0)
	return o
}

// number numbers a block that starts at next; it returns the first number
// after it.
func (o *order) number(b *Block, next int) int {
	o.steps = append(o.steps, step{block: b})
	for _, v := range b.Params {
		o.home[v] = b
	}
	for _, c := range b.Calls {
		o.at[c], o.in[c], o.seen[c] = next, b, len(o.steps)
		for _, a := range c.Args {
			if a.Value != nil {
				o.uses[a.Value] = append(o.uses[a.Value], use{next, b, c})
			}
		}
		next++
		for i, r := range c.Regions {
			o.site[r] = site{c, i}
			next = o.number(r, next)
		}
		o.steps = append(o.steps, step{call: c})
		for _, v := range c.Results {
			if v != nil {
				o.home[v] = b
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

// usedAfter returns a use of v that may run after call c has started and is
// not an operand of c. Another branch of an if around c does not.
func (o *order) usedAfter(v *Value, c *Call) (use, bool) {
	uses := o.uses[v]
	for _, u := range uses[sort.Search(len(uses), func(i int) bool { return uses[i].at > o.at[c] }):] {
		if !o.exclusive(u.block, o.in[c]) {
			return u, true
		}
	}
	return use{}, false
}

// isOver reports whether no use of the value has a number after that of c.
func (o *order) isOver(v *Value, c *Call) bool {
	uses := o.uses[v]
	return len(uses) == 0 || uses[len(uses)-1].at <= o.at[c]
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

// isCarried reports whether the value is a parameter of a loop's region.
func (o *order) isCarried(v *Value) bool {
	s, nested := o.site[o.home[v]]
	return nested && s.call.Op.Loop
}

// loop returns the innermost region around the call that may run many times,
// nil when there is none.
func (o *order) loop(c *Call) *Block {
	b := o.in[c]
	for s, ok := o.site[b]; ok; s, ok = o.site[b] {
		if !s.call.Op.Branch {
			return b
		}
		b = o.in[s.call]
	}
	return nil
}

// within reports whether the value is defined inside the block.
func (o *order) within(v *Value, outer *Block) bool {
	for b := o.home[v]; b != nil; b = o.in[o.site[b].call] {
		if b == outer {
			return true
		}
	}
	return false
}
