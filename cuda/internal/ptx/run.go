package ptx

import "fmt"

// run is one launch.
type run struct {
	kernel   *Kernel
	launch   Launch
	args     []byte // the bytes of all parameters
	tracker  Tracker
	races    *shadow // of global memory
	report   *Report
	fault    *Fault
	limit    uint64
	switches bool // threads take turns at every access
	random   uint64
	seen     map[[3]int32]bool // the findings that were reported
	resident []*block
	ready    []*thread
	idle     []*block // whose memory the next block takes
	blocks   uint64
	started  uint64
	stride   uint64
}

// quantum is the number of instructions after which another thread has a turn,
// so that a thread that waits for memory to change does not wait for ever.
const quantum = 10_000

// Run runs a launch to its end. An error is a *Fault; what went wrong without
// ending the run is in the report, which is valid after an error too.
func (k *Kernel) Run(l Launch) (*Report, error) {
	r := &run{kernel: k, launch: l, report: &Report{}, limit: l.Steps, seen: map[[3]int32]bool{}}
	if r.limit == 0 {
		r.limit = 1 << 30
	}
	if reason := r.prepare(); reason != "" {
		return r.report, &Fault{Kernel: k.name, Reason: reason}
	}
	for r.fault == nil {
		r.start()
		if len(r.ready) == 0 {
			break
		}
		r.turn()
	}
	if r.fault == nil && len(r.resident) > 0 {
		r.deadlock()
	}
	if r.fault != nil {
		return r.report, r.fault
	}
	return r.report, nil
}

// prepare checks the launch; it returns why it is refused.
func (r *run) prepare() string {
	k, l := r.kernel, r.launch
	threads := uint64(1)
	r.blocks = 1
	for i := range 3 {
		if k.required[i] != 0 && uint32(k.required[i]) != l.Block[i] {
			return fmt.Sprintf("got a block of %v threads, want %v as the kernel requires", l.Block, k.required)
		}
		threads *= uint64(l.Block[i])
		if limit := uint32([]int{1024, 1024, 64}[i]); l.Block[i] == 0 || l.Block[i] > limit || threads > uint64(k.maxThreads) {
			return fmt.Sprintf("got a block of %v threads, want 1 to %d in all, and at most 64 in z", l.Block, k.maxThreads)
		}
		r.blocks *= uint64(l.Grid[i])
		if limit := uint32([]int{1<<31 - 1, 65535, 65535}[i]); l.Grid[i] == 0 || l.Grid[i] > limit || r.blocks > 1<<32-1 {
			return fmt.Sprintf("got a grid of %v blocks, want 1 to 2147483647 in x, to 65535 in y and z, and less than 2^32 in all", l.Grid)
		}
	}
	if len(l.Args) != len(k.params) {
		return fmt.Sprintf("got %d arguments, want %d", len(l.Args), len(k.params))
	}
	r.args = make([]byte, k.paramBytes)
	for i, p := range k.params {
		if len(l.Args[i]) != p.Size {
			return fmt.Sprintf("got %d bytes for parameter %d, %s, want %d", len(l.Args[i]), i, p.Name, p.Size)
		}
		copy(r.args[p.Offset:], l.Args[i])
	}
	if l.Shared > 1<<20 {
		return fmt.Sprintf("got %d bytes of dynamic shared memory, want at most %d", l.Shared, 1<<20)
	}
	if l.Memory == nil {
		r.launch.Memory = noMemory{}
	}
	r.tracker, _ = l.Memory.(Tracker)
	if l.Races {
		r.races = newShadow()
	}
	r.random, r.switches = l.Seed, l.Seed != 0
	r.order()
	return ""
}

// noMemory is that of a launch without one.
type noMemory struct{}

func (noMemory) Bytes(address uint64, _ int, _ bool) ([]byte, error) {
	return nil, fmt.Errorf("got the address %#x, want none: the launch has no memory", address)
}

// order chooses the sequence of blocks: each number once, as stride and the
// number of blocks have no common divisor.
func (r *run) order() {
	r.stride = 1
	if !r.switches || r.blocks == 1 {
		return
	}
	for gcd := uint64(0); gcd != 1; {
		r.stride = 1 + r.next()%(r.blocks-1)
		a, b := r.stride, r.blocks
		for b != 0 {
			a, b = b, a%b
		}
		gcd = a
	}
}

// next draws a number (splitmix64).
func (r *run) next() uint64 {
	r.random += 0x9e37_79b9_7f4a_7c15
	z := r.random
	z = (z ^ z>>30) * 0xbf58_476d_1ce4_e5b9
	z = (z ^ z>>27) * 0x94d0_49bb_1331_11eb
	return z ^ z>>31
}

// start makes blocks resident: one, or with a seed a few, whose threads mix.
func (r *run) start() {
	want := 1
	if r.switches {
		want = 1 + int(r.launch.Seed%4)
	}
	for len(r.resident) < want && r.started < r.blocks {
		n := r.started
		if r.stride != 1 {
			n = (r.launch.Seed%r.blocks + n*r.stride) % r.blocks
		}
		r.started++
		b := r.newBlock(n)
		r.resident = append(r.resident, b)
		for i := range b.threads {
			r.ready = append(r.ready, &b.threads[i])
		}
	}
}

// turn lets one thread run.
func (r *run) turn() {
	i := 0
	if r.switches {
		i = int(r.next() >> 33 % uint64(len(r.ready)))
	}
	t := r.ready[i]
	n := t.run(int(min(quantum, r.limit-r.report.Steps+1)))
	r.report.Steps += uint64(n)
	if r.fault != nil {
		return
	}
	if r.report.Steps > r.limit {
		t.pc++ // names the instruction that would be next
		t.fail(fmt.Sprintf("got more than %d instructions, want an end: a loop does not end, or the launch needs more Steps", r.limit))
		return
	}
	if t.state == left {
		t.block.leave(t)
	}
	switch {
	case t.state == ready && r.switches:
	case t.state == ready: // to the end of the queue
		copy(r.ready, r.ready[1:])
		r.ready[len(r.ready)-1] = t
	case r.switches:
		last := len(r.ready) - 1
		r.ready[i] = r.ready[last]
		r.ready = r.ready[:last]
	default:
		r.ready = r.ready[1:]
	}
}

// wake makes a thread that waited run again. current is the one that has its
// turn, which is in the queue.
func (r *run) wake(t, current *thread) {
	t.state = ready
	if t != current {
		r.ready = append(r.ready, t)
	}
}

// end removes a block whose threads have all left.
func (r *run) end(b *block) {
	for i, c := range r.resident {
		if c == b {
			r.resident = append(r.resident[:i], r.resident[i+1:]...)
		}
	}
	r.idle = append(r.idle, b)
}

// first reports whether a finding is the first of its kind between two
// instructions, and few enough were reported.
func (r *run) first(k Kind, a, b int32) bool {
	key := [3]int32{int32(k), a, b}
	if r.seen[key] || len(r.seen) >= 100 {
		return false
	}
	r.seen[key] = true
	return true
}

// deadlock reports that every thread waits.
func (r *run) deadlock() {
	for _, b := range r.resident {
		for i := range b.threads {
			t := &b.threads[i]
			if t.state == left {
				continue
			}
			for j := range b.threads {
				if o := &b.threads[j]; o.state != left && (o.pc != t.pc || o.state != t.state || t.mask != o.mask) {
					t.fail(fmt.Sprintf("got a wait without an end, want one that ends: thread %v waits in line %d, %q", o.index(), r.kernel.places[o.pc-1].line, r.kernel.places[o.pc-1].text))
					return
				}
			}
			t.fail("got a wait without an end, want all threads that it names to come here")
			return
		}
	}
}
