package ptx

import (
	"fmt"
	"math/bits"
)

// What a thread exchanges with its warp, in inst.n. 0 is bar.warp.sync.
const (
	shuffleUp uint8 = iota + 1
	shuffleDown
	shuffleXor
	shuffleIndex
	voteAll
	voteAny
	voteUniform
	voteBallot
)

// runBarrier waits for all threads of the block.
func runBarrier(t *thread, in *inst) {
	b, id := t.block, t.r[in.a]
	if id >= uint64(len(b.waiting)) {
		t.fail(fmt.Sprintf("got barrier %d, want one of 0 to %d", id, len(b.waiting)-1))
		return
	}
	if n := len(b.threads); in.b >= 0 && t.r[in.b] != uint64(n) {
		t.fail(fmt.Sprintf("got a barrier for %d threads, want one for all %d of the block", t.r[in.b], n))
		return
	}
	if in.flag && b.gone > 0 {
		t.fail(fmt.Sprintf("got a barrier when %d threads have left, want one that all threads of the block reach", b.gone))
		return
	}
	t.state, t.yield, t.mask = atBarrier, true, uint32(id)
	b.waiting[id]++
	b.release(t, id)
}

// release lets the threads at a barrier go if all have come.
func (b *block) release(current *thread, id uint64) {
	if b.waiting[id] == 0 || b.waiting[id]+b.gone < len(b.threads) {
		return
	}
	for i := range b.threads {
		t, first := &b.threads[i], &b.threads[i&^31]
		if t.state == atBarrier && first.state == atBarrier && t.pc != first.pc && t.code[t.pc-1].flag {
			t.fail(fmt.Sprintf("got two barriers in one warp, want one: thread %v waits in line %d", first.index(), b.run.kernel.places[first.pc-1].line))
			return
		}
	}
	b.waiting[id] = 0
	b.epoch++
	for i := range b.threads {
		if t := &b.threads[i]; t.state == atBarrier {
			b.run.wake(t, current)
		}
	}
}

// leave counts a thread that has ended, and lets go whoever waits only for it.
func (b *block) leave(t *thread) {
	b.gone++
	if b.gone == len(b.threads) {
		b.run.end(b)
		return
	}
	for i := range b.threads {
		if o := &b.threads[i]; o.state == atBarrier && o.code[o.pc-1].flag {
			o.fail(fmt.Sprintf("got a barrier that thread %v does not reach before it ends, want one that all threads of the block reach", t.index()))
			return
		}
	}
	for id := range b.waiting {
		b.release(t, uint64(id))
	}
	warp := t.warp()
	for i := range warp {
		if warp[i].state == atWarp {
			warp[i].converge(t)
		}
	}
}

// warp returns the threads of the warp.
func (t *thread) warp() []thread {
	from := t.id &^ 31
	return t.block.threads[from:min(from+32, len(t.block.threads))]
}

// runConverge waits for the threads of the warp that the mask b names.
func runConverge(t *thread, in *inst) {
	t.mask = uint32(t.r[in.b])
	if t.mask>>(t.id%32)&1 == 0 {
		t.fail(fmt.Sprintf("got the mask %#08x, want one with lane %d, which runs the instruction", t.mask, t.id%32))
		return
	}
	t.state, t.yield = atWarp, true
	t.converge(t)
}

// converge does the exchange that t waits for if every thread has come that the
// mask names and that has not left.
func (t *thread) converge(current *thread) {
	b, warp := t.block, t.warp()
	var here, live uint32
	for i := range warp {
		o := &warp[i]
		if o.state == left {
			continue
		}
		live |= 1 << i
		if t.mask>>i&1 == 0 {
			continue
		}
		if o.state != atWarp || o.pc != t.pc || o.mask != t.mask {
			return
		}
		here |= 1 << i
	}
	in := &t.code[t.pc-1]
	switch {
	case in.n == 0:
		for i := range warp {
			if here == live {
				warp[i].epoch++
			}
		}
	case in.n < voteAll:
		shuffle(warp, in, here)
	default:
		vote(warp, in, here)
	}
	for i := range warp {
		if here>>i&1 == 1 && b.run.fault == nil {
			b.run.wake(&warp[i], current)
		}
	}
}

// shuffle gives each thread the value of another lane, as the ISA computes it.
func shuffle(warp []thread, in *inst, here uint32) {
	var values [32]uint64
	for i := range warp {
		values[i] = warp[i].r[in.a]
	}
	for m := here; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		t := &warp[lane]
		by, clamp, segment := int(t.r[in.e]&31), int(t.r[in.c]&31), int(t.r[in.c]>>8&31)
		last := lane&segment | clamp&^segment
		from, valid := 0, false
		switch in.n {
		case shuffleUp:
			from = lane - by
			valid = from >= last
		case shuffleDown:
			from = lane + by
			valid = from <= last
		case shuffleXor:
			from = lane ^ by
			valid = from <= last
		case shuffleIndex:
			from = lane&segment | by&^segment
			valid = from <= last
		}
		if !valid {
			from = lane
		}
		if here>>from&1 == 0 {
			t.fail(fmt.Sprintf("got lane %d, which does not take part, want one that does", from))
			return
		}
		t.r[in.d] = values[from]
		if in.d2 >= 0 {
			t.r[in.d2] = bit(valid)
		}
	}
}

func vote(warp []thread, in *inst, here uint32) {
	var ballot uint32
	for i := range warp {
		if here>>i&1 == 1 && (warp[i].r[in.a] != 0) != in.flag {
			ballot |= 1 << i
		}
	}
	var r uint64
	switch in.n {
	case voteAll:
		r = bit(ballot == here)
	case voteAny:
		r = bit(ballot != 0)
	case voteUniform:
		r = bit(ballot == here || ballot == 0)
	case voteBallot:
		r = uint64(ballot)
	}
	for m := here; m != 0; m &= m - 1 {
		warp[bits.TrailingZeros32(m)].r[in.d] = r
	}
}
