package fake

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// hostBytes returns host memory by its address.
func hostBytes(address uintptr, n uint64) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), n)
}

// known reports whether all n bytes at p have memory. The driver refuses copies
// of other addresses at once.
func (m *Machine) known(p driver.Pointer, n uint64) bool {
	for n > 0 {
		a := m.space.find(p)
		if a == nil {
			return false
		}
		k := min(n, uint64(a.end()-p))
		if a.kind != kindMapping && k < n {
			return false
		}
		p, n = p+driver.Pointer(k), n-k
	}
	return true
}

// pinned returns the page-locked or managed area that contains n bytes at a
// host address, nil if there is none.
func (m *Machine) pinned(address uintptr, n uint64) *area {
	a := m.space.find(driver.Pointer(address))
	if a == nil || a.kind != kindHost && a.kind != kindManaged || driver.Pointer(address)+driver.Pointer(n) > a.end() {
		return nil
	}
	return a
}

// MemcpyHtoDAsync implements [driver.Driver]. Bytes of memory that is not
// page-locked are read before it returns, others when the copy runs.
func (m *Machine) MemcpyHtoDAsync(ctx driver.Context, dst driver.Pointer, src uintptr, size uint64, stream driver.Stream) error {
	const call = "MemcpyHtoDAsync"
	_, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	if size == 0 {
		return nil
	}
	if src == 0 || !m.known(dst, size) {
		return fail(call, driver.InvalidValue)
	}
	source := m.host(src, size)
	if source.area == nil && s.capture == nil {
		source.stage()
		if size > stagedAtOnce {
			m.counts.synchronising++
		}
	}
	return fail(call, m.submit(s, &op{what: "copy to the device", bytes: size, run: func(o *op) driver.Result {
		b, err := source.bytes(0, size)
		if err != nil {
			return m.fault(o, err)
		}
		m.touchHost(o, source, 0, size, false)
		return m.store(o, dst, b)
	}}))
}

// stagedAtOnce is the size up to which the driver copies pageable memory into a
// buffer of its own and returns. For more it may wait for the stream.
const stagedAtOnce = 64 << 10

// host is host memory that a copy reads or writes when it runs.
type host struct {
	staged  []byte // read already
	area    *area  // nil for pageable memory
	address uintptr
	n       uint64
}

// host returns n bytes of host memory.
func (m *Machine) host(address uintptr, n uint64) host {
	return host{area: m.pinned(address, n), address: address, n: n}
}

// stage reads the bytes now.
func (h *host) stage() { h.staged = append([]byte(nil), hostBytes(h.address, h.n)...) }

// bytes returns n bytes from the one at. Page-locked memory may have been freed
// since the copy was submitted.
func (h host) bytes(at, n uint64) ([]byte, error) {
	switch {
	case h.staged != nil:
		return h.staged[at : at+n], nil
	case h.area == nil:
		return hostBytes(h.address+uintptr(at), n), nil
	case h.area.mem.data == nil:
		return nil, fmt.Errorf("%s of %d bytes at %#x was freed", h.area.kind, h.area.size, uint64(h.area.base))
	}
	at += uint64(h.address) - uint64(h.area.base)
	return h.area.mem.data[at : at+n], nil
}

// store writes bytes to the memory of the operation's device.
func (m *Machine) store(o *op, dst driver.Pointer, b []byte) driver.Result {
	all, err := m.pieces(m.reach(o.ctx.device, dst), dst, uint64(len(b)), true, o)
	if err != nil {
		return m.fault(o, err)
	}
	for _, p := range all {
		b = b[copy(p.data(), b):]
		p.mark()
	}
	return driver.Success
}

// load reads bytes for the host.
func (m *Machine) load(o *op, b []byte, src driver.Pointer) driver.Result {
	all, err := m.pieces(m.reach(o.ctx.device, src), src, uint64(len(b)), false, o)
	if err != nil {
		return m.fault(o, err)
	}
	done := uint64(0)
	for _, p := range all {
		copy(b[done:], p.data())
		if bits := p.area.mem.written; bits != nil {
			if first := firstClear(bits, p.at, p.n); first < p.n {
				m.report(Unwritten, "%s%s: byte %d of %d at %#x was never written", o.what, o.site, done+first, len(b), uint64(src))
				hideUnwritten(b[done:done+p.n], bits, p.at)
			}
		}
		done += p.n
	}
	return driver.Success
}

// hideUnwritten replaces the bytes that nobody wrote by the pattern. The memory
// itself has zeros there, which would look right too often.
func hideUnwritten(b, bits []byte, at uint64) {
	for i := range b {
		if !bit(bits, at+uint64(i)) {
			b[i] = unwrittenByte
		}
	}
}

// MemcpyDtoHAsync implements [driver.Driver]. A copy to memory that is not
// page-locked is done when it returns.
func (m *Machine) MemcpyDtoHAsync(ctx driver.Context, dst uintptr, src driver.Pointer, size uint64, stream driver.Stream) error {
	const call = "MemcpyDtoHAsync"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	if size == 0 {
		return nil
	}
	if dst == 0 || !m.known(src, size) {
		return fail(call, driver.InvalidValue)
	}
	target := m.host(dst, size)
	o := &op{what: "copy to the host", bytes: size, run: func(o *op) driver.Result {
		b, err := target.bytes(0, size)
		if err != nil {
			return m.fault(o, err)
		}
		m.touchHost(o, target, 0, size, true)
		return m.load(o, b, src)
	}}
	r := m.submit(s, o)
	if target.area == nil && s.capture == nil && r == driver.Success {
		m.counts.synchronising++
		m.force(o)
		r = c.lost
	}
	return fail(call, r)
}

// MemcpyDtoDAsync implements [driver.Driver].
func (m *Machine) MemcpyDtoDAsync(ctx driver.Context, dst, src driver.Pointer, size uint64, stream driver.Stream) error {
	const call = "MemcpyDtoDAsync"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	return fail(call, m.copyDevice(s, dst, c.device, src, c.device, size))
}

// MemcpyPeerAsync implements [driver.Driver]. Each side needs access to its own
// memory only.
func (m *Machine) MemcpyPeerAsync(dst driver.Pointer, dstCtx driver.Context, src driver.Pointer, srcCtx driver.Context, size uint64, stream driver.Stream) error {
	const call = "MemcpyPeerAsync"
	to, err := m.in(call, dstCtx)
	if err != nil {
		return err
	}
	defer m.end()
	from := m.contexts[srcCtx]
	if from == nil {
		return fail(call, driver.InvalidContext)
	}
	if from.lost != driver.Success {
		return fail(call, from.lost)
	}
	s := m.stream(to, stream)
	if s == nil {
		s = m.stream(from, stream)
	}
	if s == nil {
		return fail(call, driver.InvalidHandle)
	}
	return fail(call, m.copyDevice(s, dst, to.device, src, from.device, size))
}

// copyDevice submits a copy between devices.
func (m *Machine) copyDevice(s *stream, dst driver.Pointer, to *device, src driver.Pointer, from *device, size uint64) driver.Result {
	if size == 0 {
		return driver.Success
	}
	if !m.known(dst, size) || !m.known(src, size) {
		return driver.InvalidValue
	}
	return m.submit(s, &op{what: "copy on the device", bytes: size, run: func(o *op) driver.Result {
		return m.move(o, dst, m.reach(to, dst), src, m.reach(from, src), size)
	}})
}

// reach returns the device that copies memory at p for d: the driver copies
// memory of allocations through the device that has it.
func (m *Machine) reach(d *device, p driver.Pointer) *device {
	if a := m.space.find(p); a != nil && (a.kind == kindAlloc || a.kind == kindImport) {
		return a.ctx.device
	}
	return d
}

// move copies size bytes, and which of them were written.
func (m *Machine) move(o *op, dst driver.Pointer, to *device, src driver.Pointer, from *device, size uint64) driver.Result {
	if dst < src+driver.Pointer(size) && src < dst+driver.Pointer(size) {
		m.report(Overlap, "%s%s: %d bytes from %#x to %#x overlap", o.what, o.site, size, uint64(src), uint64(dst))
	}
	in, err := m.pieces(from, src, size, false, o)
	if err != nil {
		return m.fault(o, err)
	}
	out, err := m.pieces(to, dst, size, true, o)
	if err != nil {
		return m.fault(o, err)
	}
	for len(in) > 0 {
		a, b := &in[0], &out[0]
		n := min(a.n, b.n)
		copy(b.area.mem.data[b.at:b.at+n], a.area.mem.data[a.at:a.at+n])
		switch w := b.area.mem.written; {
		case w == nil:
		case a.area.mem.written == nil:
			setBits(w, b.at, n)
		default:
			copyBits(w, b.at, a.area.mem.written, a.at, n)
		}
		if a.at, a.n = a.at+n, a.n-n; a.n == 0 {
			in = in[1:]
		}
		if b.at, b.n = b.at+n, b.n-n; b.n == 0 {
			out = out[1:]
		}
	}
	return driver.Success
}
