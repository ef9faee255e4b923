package fake

import (
	"encoding/binary"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// Memcpy2DAsync implements [driver.Driver].
func (m *Machine) Memcpy2DAsync(ctx driver.Context, p driver.Copy2D, stream driver.Stream) error {
	const call = "Memcpy2DAsync"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	if p.Width == 0 || p.Height == 0 {
		return nil
	}
	if !m.valid2D(p) {
		return fail(call, driver.InvalidValue)
	}
	run, sync := m.rows(p), false
	if s.capture == nil {
		switch {
		case p.SrcHost != 0 && m.pinned(p.SrcHost, span2D(p.SrcPitch, p)) == nil:
			run = m.stagedRows(p)
		case p.DstHost != 0:
			sync = m.pinned(p.DstHost, span2D(p.DstPitch, p)) == nil
		}
	}
	o := &op{what: "copy of rows", bytes: p.Width * p.Height, run: run}
	r := m.submit(s, o)
	if sync && r == driver.Success {
		m.counts.synchronising++
		m.force(o)
		r = c.lost
	}
	return fail(call, r)
}

// span2D is the number of bytes from the first to the last of a side.
func span2D(pitch uint64, p driver.Copy2D) uint64 { return pitch*(p.Height-1) + p.Width }

func (m *Machine) valid2D(p driver.Copy2D) bool {
	if (p.Dst != 0) == (p.DstHost != 0) || (p.Src != 0) == (p.SrcHost != 0) || p.SrcHost != 0 && p.DstHost != 0 {
		return false
	}
	if p.Height > 1 && (p.DstPitch < p.Width || p.SrcPitch < p.Width) {
		return false
	}
	for y := range p.Height {
		if p.Dst != 0 && !m.known(p.Dst+driver.Pointer(y*p.DstPitch), p.Width) ||
			p.Src != 0 && !m.known(p.Src+driver.Pointer(y*p.SrcPitch), p.Width) {
			return false
		}
	}
	return true
}

// rows returns what copies the rows when it runs.
func (m *Machine) rows(p driver.Copy2D) func(*op) driver.Result {
	var side host
	switch {
	case p.SrcHost != 0:
		side = m.host(p.SrcHost, span2D(p.SrcPitch, p))
	case p.DstHost != 0:
		side = m.host(p.DstHost, span2D(p.DstPitch, p))
	}
	return func(o *op) driver.Result {
		for y := range p.Height {
			if r := m.row(o, p, side, y); r != driver.Success {
				return r
			}
		}
		return driver.Success
	}
}

func (m *Machine) row(o *op, p driver.Copy2D, side host, y uint64) driver.Result {
	dst, src := p.Dst+driver.Pointer(y*p.DstPitch), p.Src+driver.Pointer(y*p.SrcPitch)
	if p.SrcHost == 0 && p.DstHost == 0 {
		return m.move(o, dst, m.reach(o.ctx.device, dst), src, m.reach(o.ctx.device, src), p.Width)
	}
	at := y * p.SrcPitch
	if p.DstHost != 0 {
		at = y * p.DstPitch
	}
	b, err := side.bytes(at, p.Width)
	if err != nil {
		return m.fault(o, err)
	}
	m.touchHost(o, side, at, p.Width, p.DstHost != 0)
	if p.DstHost != 0 {
		return m.load(o, b, src)
	}
	return m.store(o, dst, b)
}

// stagedRows reads the rows of pageable memory now, and returns what writes
// them.
func (m *Machine) stagedRows(p driver.Copy2D) func(*op) driver.Result {
	staged := make([]byte, 0, p.Width*p.Height)
	for y := range p.Height {
		staged = append(staged, hostBytes(p.SrcHost+uintptr(y*p.SrcPitch), p.Width)...)
	}
	if len(staged) > stagedAtOnce {
		m.counts.synchronising++
	}
	return func(o *op) driver.Result {
		for y := range p.Height {
			if r := m.store(o, p.Dst+driver.Pointer(y*p.DstPitch), staged[y*p.Width:(y+1)*p.Width]); r != driver.Success {
				return r
			}
		}
		return driver.Success
	}
}

// MemsetD8Async implements [driver.Driver].
func (m *Machine) MemsetD8Async(ctx driver.Context, dst driver.Pointer, value byte, n uint64, stream driver.Stream) error {
	return m.memset("MemsetD8Async", ctx, dst, []byte{value}, n, stream)
}

// MemsetD32Async implements [driver.Driver].
func (m *Machine) MemsetD32Async(ctx driver.Context, dst driver.Pointer, value uint32, n uint64, stream driver.Stream) error {
	return m.memset("MemsetD32Async", ctx, dst, binary.LittleEndian.AppendUint32(nil, value), n, stream)
}

func (m *Machine) memset(call string, ctx driver.Context, dst driver.Pointer, pattern []byte, n uint64, stream driver.Stream) error {
	_, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	if n == 0 {
		return nil
	}
	unit := uint64(len(pattern))
	if uint64(dst)%unit != 0 || n > 1<<62/unit || !m.known(dst, n*unit) {
		return fail(call, driver.InvalidValue)
	}
	return fail(call, m.submit(s, &op{what: "set of memory", bytes: n * unit, run: func(o *op) driver.Result {
		all, err := m.pieces(m.reach(o.ctx.device, dst), dst, n*unit, true, o)
		if err != nil {
			return m.fault(o, err)
		}
		for _, p := range all {
			b := p.data()
			for k := copy(b, pattern); k < len(b); k *= 2 {
				copy(b[k:], b[:k])
			}
			p.mark()
		}
		return driver.Success
	}}))
}
