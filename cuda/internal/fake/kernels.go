package fake

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

type module struct {
	ctx  *context
	code *ptx.Module
	site site
}

type function struct {
	module driver.Module
	ctx    *context
	kernel *ptx.Kernel
}

const (
	maxThreads = 1024
	maxShared  = 48 << 10
)

// ModuleLoadData implements [driver.Driver].
func (m *Machine) ModuleLoadData(ctx driver.Context, text string) (driver.Module, string, error) {
	c, err := m.in("ModuleLoadData", ctx)
	if err != nil {
		return 0, "", err
	}
	defer m.end()
	code, err := ptx.Parse(text)
	if err != nil {
		return 0, err.Error(), fail("ModuleLoadData", driver.InvalidPTX)
	}
	h := driver.Module(m.handle())
	m.modules[h] = &module{ctx: c, code: code, site: here()}
	return h, "", nil
}

// ModuleUnload implements [driver.Driver].
func (m *Machine) ModuleUnload(ctx driver.Context, h driver.Module) error {
	c, err := m.in("ModuleUnload", ctx)
	if err != nil {
		return err
	}
	defer m.end()
	mod := m.modules[h]
	if mod == nil || mod.ctx != c {
		return fail("ModuleUnload", driver.InvalidHandle)
	}
	m.dropModule(h)
	return nil
}

func (m *Machine) dropModule(h driver.Module) {
	delete(m.modules, h)
	for fh, f := range m.funcs {
		if f.module == h {
			delete(m.funcs, fh)
		}
	}
}

// ModuleGetFunction implements [driver.Driver].
func (m *Machine) ModuleGetFunction(ctx driver.Context, h driver.Module, name string) (driver.Function, error) {
	c, err := m.in("ModuleGetFunction", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	mod := m.modules[h]
	if mod == nil || mod.ctx != c {
		return 0, fail("ModuleGetFunction", driver.InvalidHandle)
	}
	k, err := mod.code.Kernel(name)
	if err != nil {
		return 0, fail("ModuleGetFunction", driver.NotFound)
	}
	f := driver.Function(m.handle())
	m.funcs[f] = &function{module: h, ctx: c, kernel: k}
	return f, nil
}

// FuncGetAttribute implements [driver.Driver].
func (m *Machine) FuncGetAttribute(a driver.FunctionAttribute, h driver.Function) (int, error) {
	if err := m.begin("FuncGetAttribute"); err != nil {
		return 0, err
	}
	defer m.end()
	f := m.funcs[h]
	if f == nil {
		return 0, fail("FuncGetAttribute", driver.InvalidHandle)
	}
	switch a {
	case driver.FuncMaxThreadsPerBlock:
		return f.threads(), nil
	case driver.FuncSharedBytes:
		return f.kernel.SharedBytes(), nil
	case driver.FuncLocalBytes:
		return 0, nil
	case driver.FuncRegisters:
		return 32, nil
	}
	return 0, fail("FuncGetAttribute", driver.InvalidValue)
}

// threads returns the most threads that a block of f may have.
func (f *function) threads() int {
	if n := f.kernel.MaxThreads(); n > 0 {
		return min(n, maxThreads)
	}
	return maxThreads
}

// LaunchKernel implements [driver.Driver].
func (m *Machine) LaunchKernel(ctx driver.Context, h driver.Function, grid, block driver.Dim3, shared uint32, stream driver.Stream, args [][]byte) error {
	const call = "LaunchKernel"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	f := m.funcs[h]
	if f == nil || f.ctx != c {
		return fail(call, driver.InvalidHandle)
	}
	if !f.accepts(grid, block, shared, args) {
		return fail(call, driver.InvalidValue)
	}
	own := make([][]byte, len(args))
	for i, a := range args {
		own[i] = append([]byte(nil), a...)
	}
	l := ptx.Launch{
		Grid: [3]uint32{grid.X, grid.Y, grid.Z}, Block: [3]uint32{block.X, block.Y, block.Z},
		Shared: shared, Args: own, Races: !m.cfg.NoRaces,
	}
	return fail(call, m.submit(s, &op{what: "kernel " + f.kernel.Name(), run: func(o *op) driver.Result {
		return m.runKernel(o, f.kernel, l)
	}}))
}

// accepts reports whether a launch is within the limits.
func (f *function) accepts(grid, block driver.Dim3, shared uint32, args [][]byte) bool {
	threads := uint64(block.X) * uint64(block.Y) * uint64(block.Z)
	params := f.kernel.Params()
	switch {
	case grid.X == 0, grid.Y == 0, grid.Z == 0, grid.X > 1<<31-1, grid.Y > 65535, grid.Z > 65535,
		threads == 0, threads > uint64(f.threads()), block.Z > 64,
		uint64(shared)+uint64(f.kernel.SharedBytes()) > maxShared, len(args) != len(params):
		return false
	}
	for i, p := range params {
		if len(args[i]) != p.Size {
			return false
		}
	}
	return true
}

// runKernel interprets a launch.
func (m *Machine) runKernel(o *op, k *ptx.Kernel, l ptx.Launch) driver.Result {
	mem := &global{m: m, o: o}
	l.Memory = mem
	if m.cfg.Mode == Random && !m.cfg.NoRaces {
		l.Seed = uint64(m.choose(1 << 30))
	}
	rep, err := k.Run(l)
	mem.touched.flush(m, o)
	if rep != nil {
		o.bytes = rep.Steps
		for i := range rep.Findings {
			f := &rep.Findings[i]
			kind := Race
			if f.Kind == ptx.UnwrittenRead {
				kind = Unwritten
			}
			m.report(kind, "%s%s: %v", o.what, o.site, f)
		}
	}
	if err == nil {
		return driver.Success
	}
	m.report(Fault, "%s%s: %v", o.what, o.site, err)
	var fault *ptx.Fault
	switch {
	case mem.failed:
		return driver.IllegalAddress
	case errors.As(err, &fault) && strings.Contains(fault.Reason, "want a multiple of"):
		return driver.MisalignedAddress
	}
	return driver.LaunchFailed
}

// global is the memory that a kernel of an operation sees.
type global struct {
	m       *Machine
	o       *op
	failed  bool
	last    *area // that was checked last
	write   bool  // for writing, too
	touched touches
}

var _ ptx.Tracker = (*global)(nil)

// Bytes implements [ptx.Memory].
func (g *global) Bytes(address uint64, n int, write bool) ([]byte, error) {
	p := driver.Pointer(address)
	a := g.last
	if a == nil || write && !g.write || p < a.base || uint64(p-a.base)+uint64(n) > a.size {
		all, err := g.m.pieces(g.o.ctx.device, p, uint64(n), write, g.o)
		if err == nil && len(all) != 1 {
			err = fmt.Errorf("%d bytes at %#x cross the end of a mapping", n, address)
		}
		if err != nil {
			g.failed = true
			return nil, err
		}
		a = all[0].area
		g.last, g.write = a, write
	}
	at := a.offset + uint64(p-a.base)
	if !g.m.cfg.NoOrder {
		g.touched.add(a.mem, at, uint64(n), write)
	}
	b := a.mem.data[at : at+uint64(n)]
	if bits := a.mem.written; bits != nil && !write && firstClear(bits, at, uint64(n)) < uint64(n) {
		hideUnwritten(b, bits, at)
	}
	return b, nil
}

// Written implements [ptx.Tracker].
func (g *global) Written(address uint64, n int) bool {
	a := g.m.space.find(driver.Pointer(address))
	if a == nil || a.mem.written == nil {
		return true
	}
	at := a.offset + address - uint64(a.base)
	return firstClear(a.mem.written, at, uint64(n)) == uint64(n)
}

// MarkWritten implements [ptx.Tracker].
func (g *global) MarkWritten(address uint64, n int) {
	a := g.m.space.find(driver.Pointer(address))
	if a != nil && a.mem.written != nil {
		setBits(a.mem.written, a.offset+address-uint64(a.base), uint64(n))
	}
}
