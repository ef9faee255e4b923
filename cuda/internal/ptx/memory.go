package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// sharedWindow is the generic address of the first byte of shared memory. No
// device has memory there.
const sharedWindow = 1 << 56

// use is how an instruction uses bytes.
type use uint8

const (
	reads use = iota
	writes
	updates // atomically
)

// at returns the n bytes at an address for an access, nil after a fault.
func (t *thread) at(in *inst, n int, u use) []byte {
	address, s := t.r[in.a]+in.x, in.space
	if s == genericSpace {
		if s = globalSpace; address-sharedWindow < 1<<24 {
			s, address = sharedSpace, address-sharedWindow
		}
	}
	if address&uint64(n-1) != 0 {
		t.fail(fmt.Sprintf("got the address %#x, want a multiple of %d", address, n))
		return nil
	}
	t.yield = t.yield || t.block.run.switches
	if s == sharedSpace {
		return t.sharedAt(address, n, u)
	}
	run := t.block.run
	b, err := run.launch.Memory.Bytes(address, n, u != reads)
	if err != nil {
		t.fail(err.Error())
		return nil
	}
	if len(b) < n {
		t.fail(fmt.Sprintf("got %d bytes of memory at %#x, want %d", len(b), address, n))
		return nil
	}
	if run.tracker != nil {
		if u != writes && !run.tracker.Written(address, n) {
			t.unwritten(fmt.Sprintf("%d bytes of global memory at %#x", n, address))
		}
		if u != reads {
			run.tracker.MarkWritten(address, n)
		}
	}
	if run.races != nil {
		run.races.access(t, address, n, u)
	}
	return b[:n]
}

func (t *thread) sharedAt(address uint64, n int, u use) []byte {
	b := t.block
	if size := uint64(len(b.shared)); address > size || uint64(n) > size-address {
		t.fail(fmt.Sprintf("got %d bytes at %#x of shared memory, want some of its %d", n, address, size))
		return nil
	}
	at := int(address)
	written := b.written[at:][:n]
	if u != writes && slices.Contains(written, false) {
		t.unwritten(fmt.Sprintf("%d bytes of shared memory at %d", n, address))
	}
	if u != reads {
		for i := range written {
			written[i] = true
		}
	}
	if b.races != nil {
		b.races.access(t, address, n, u)
	}
	return b.shared[at:][:n]
}

// load reads an element.
func load(b []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func store(b []byte, size int, v uint64) {
	switch size {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func runLoad(t *thread, in *inst) {
	size := in.elem.size()
	if b := t.at(in, size*int(in.n), reads); b != nil {
		t.scatter(in, b, size)
	}
}

// scatter puts the elements of b into registers.
func (t *thread) scatter(in *inst, b []byte, size int) {
	for i := range int(in.n) {
		if s := in.vec[i]; s >= 0 {
			v := load(b[i*size:], size)
			if in.elem.isSigned() {
				v = extend(v, in.elem, int(in.reg))
			}
			t.r[s] = v
		}
	}
}

// runLoadParam reads from the bytes of the parameters.
func runLoadParam(t *thread, in *inst) {
	size := in.elem.size()
	n := size * int(in.n)
	at, args := t.r[in.a]+in.x, t.block.run.args
	switch {
	case at&uint64(n-1) != 0:
		t.fail(fmt.Sprintf("got the offset %d in the parameters, want a multiple of %d", at, n))
	case at > uint64(len(args)) || uint64(n) > uint64(len(args))-at:
		t.fail(fmt.Sprintf("got the bytes from %d of the parameters, want %d within %d", at, n, len(args)))
	default:
		t.scatter(in, args[at:], size)
	}
}

func runStore(t *thread, in *inst) {
	size := in.elem.size()
	b := t.at(in, size*int(in.n), writes)
	if b == nil {
		return
	}
	for i := range int(in.n) {
		store(b[i*size:], size, t.r[in.vec[i]])
	}
}

func runAtomic(t *thread, in *inst) {
	size := in.elem.size()
	if b := t.at(in, size, updates); b != nil {
		old := load(b, size)
		store(b, size, in.two(old, t.r[in.b]))
		if in.d >= 0 {
			t.r[in.d] = old
		}
	}
}

func runSwap(t *thread, in *inst) {
	size := in.elem.size()
	if b := t.at(in, size, updates); b != nil {
		old := load(b, size)
		if old == t.r[in.b] {
			store(b, size, t.r[in.c])
		}
		if in.d >= 0 {
			t.r[in.d] = old
		}
	}
}

// unwritten reports a load of bytes that nobody wrote.
func (t *thread) unwritten(what string) {
	run, at := t.block.run, int32(t.pc-1)
	if run.first(UnwrittenRead, at, at) {
		f := t.fault("got a load of " + what + ", want one of bytes that were written")
		run.report.Findings = append(run.report.Findings, Finding{UnwrittenRead, *f})
	}
}
