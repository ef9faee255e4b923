package ptx

// state is what a thread does.
type state uint8

const (
	ready state = iota
	atBarrier
	atWarp // waits for other threads of its warp
	left
)

// thread is one thread of a resident block.
type thread struct {
	r     []uint64 // the slots
	code  []inst
	pc    int // of the next instruction
	block *block
	id    int    // in the block
	epoch uint32 // barriers of its warp alone that it has passed
	mask  uint32 // of the lanes that it waits for
	state state
	yield bool // the turn ends
}

// block is a resident one.
type block struct {
	run     *run
	number  uint64
	threads []thread
	slots   []uint64
	shared  []byte
	written []bool  // for each byte of shared
	races   *shadow // of shared memory
	epoch   uint32  // barriers that the block has passed
	gone    int     // threads that have left
	waiting [16]int // threads at each barrier
}

// run interprets at most budget instructions and returns their number.
func (t *thread) run(budget int) int {
	t.yield = false
	for n := range budget {
		in := &t.code[t.pc]
		t.pc++
		if in.guarded && (t.r[in.guard] != 0) == in.negated {
			continue
		}
		in.run(t, in)
		if t.yield {
			return n + 1
		}
	}
	return budget
}

// newBlock makes the block of a number, with the memory of one that has ended
// if there is any.
func (r *run) newBlock(number uint64) *block {
	k, l := r.kernel, r.launch
	n := int(l.Block[0] * l.Block[1] * l.Block[2])
	var b *block
	if last := len(r.idle) - 1; last >= 0 {
		b, r.idle = r.idle[last], r.idle[:last]
		clear(b.written)
	} else {
		size := k.dynamic + int(l.Shared)
		b = &block{threads: make([]thread, n), slots: make([]uint64, n*len(k.initial)), shared: make([]byte, size), written: make([]bool, size)}
	}
	for i := range b.shared {
		b.shared[i] = 0xa5 // not a harmless zero
	}
	b.run, b.number, b.epoch, b.gone, b.waiting = r, number, 0, 0, [16]int{}
	if r.races != nil {
		b.races = newShadow()
	}
	width := len(k.initial)
	for i := range b.threads {
		slots := b.slots[i*width:][:width:width]
		copy(slots, k.initial)
		b.threads[i] = thread{r: slots, code: k.code, block: b, id: i}
		for _, s := range k.specials {
			if s.name != dynamicBase {
				slots[s.slot] = uint64(b.threads[i].special(s.name))
			}
		}
	}
	return b
}

func split(n uint64, by [3]uint32) [3]uint32 {
	x, y := uint64(by[0]), uint64(by[1])
	return [3]uint32{uint32(n % x), uint32(n / x % y), uint32(n / x / y)}
}

func (t *thread) index() [3]uint32 { return split(uint64(t.id), t.block.run.launch.Block) }

// special returns the value of a special register.
func (t *thread) special(name string) uint32 {
	l := t.block.run.launch
	lane := uint32(t.id % 32)
	if axis := name[len(name)-2:]; axis[0] == '.' {
		i := axis[1] - 'x'
		switch name[:len(name)-2] {
		case "%tid":
			return t.index()[i]
		case "%ntid":
			return l.Block[i]
		case "%ctaid":
			return split(t.block.number, l.Grid)[i]
		case "%nctaid":
			return l.Grid[i]
		}
	}
	switch name {
	case "%laneid":
		return lane
	case "%warpid":
		return uint32(t.id / 32)
	case "%nwarpid":
		return uint32(len(t.block.threads)+31) / 32
	case "%lanemask_eq":
		return 1 << lane
	case "%lanemask_lt":
		return 1<<lane - 1
	case "%lanemask_le":
		return 2<<lane - 1
	case "%lanemask_gt":
		return -(2 << lane)
	case "%lanemask_ge":
		return -(1 << lane)
	case "%dynamic_smem_size":
		return l.Shared
	}
	panic("BUG: ptx: special register " + name + " has no value")
}

// fault describes what went wrong at the instruction that the thread runs.
func (t *thread) fault(reason string) *Fault {
	k := t.block.run.kernel
	p := k.places[t.pc-1]
	return &Fault{Kernel: k.name, Line: p.line, Instruction: p.text, Block: split(t.block.number, t.block.run.launch.Grid), Thread: t.index(), Reason: reason}
}

// fail ends the launch.
func (t *thread) fail(reason string) {
	if r := t.block.run; r.fault == nil {
		r.fault = t.fault(reason)
	}
	t.yield = true
}
