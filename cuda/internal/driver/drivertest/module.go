package drivertest

import (
	"bytes"
	"encoding/binary"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// fill loads the kernel.
func (r *rig) fill() driver.Function {
	r.Helper()
	m, log, err := r.ModuleLoadData(r.ctx, PTX)
	if err != nil {
		r.Fatalf("%v\n%s", err, log)
	}
	r.Cleanup(func() { r.check(r.ModuleUnload(r.ctx, m)) })
	return must(r.ModuleGetFunction(r.ctx, m, "fill"))(r.T)
}

// fillArgs returns the parameters of the kernel.
func fillArgs(p driver.Pointer, value, count uint32) [][]byte {
	le := binary.LittleEndian
	return [][]byte{le.AppendUint64(nil, uint64(p)), le.AppendUint32(nil, value), le.AppendUint32(nil, count)}
}

func words(v uint32, n int) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, v), n)
}

func testKernel(r *rig) {
	f := r.fill()
	for a, least := range map[driver.FunctionAttribute]int{driver.FuncMaxThreadsPerBlock: 64, driver.FuncSharedBytes: 0, driver.FuncLocalBytes: 0, driver.FuncRegisters: 0} {
		if got := must(r.FuncGetAttribute(a, f))(r.T); got < least {
			r.Errorf("FuncGetAttribute %d: got %d, want at least %d", a, got, least)
		}
	}
	const n = 1000
	p := r.alloc(4 * (n + 24))
	r.check(r.MemsetD8Async(r.ctx, p, 0xee, 4*(n+24), r.s))
	r.check(r.LaunchKernel(r.ctx, f, driver.Dim3{X: 16, Y: 1, Z: 1}, driver.Dim3{X: 64, Y: 1, Z: 1}, 0, r.s, fillArgs(p, 0x12345678, n)))
	// The parameters are copied by the launch, so the next launch may have
	// others.
	r.check(r.LaunchKernel(r.ctx, f, driver.Dim3{X: 1, Y: 1, Z: 1}, driver.Dim3{X: 64, Y: 1, Z: 1}, 0, r.s, fillArgs(p, 0x9abcdef0, 10)))
	r.equal("fill", r.read(p, 4*(n+24)), append(append(words(0x9abcdef0, 10), words(0x12345678, n-10)...), bytes.Repeat([]byte{0xee}, 4*24)...))
}

func testModuleFails(r *rig) {
	_, log, err := r.ModuleLoadData(r.ctx, ".version 6.4\n.target sm_52\n.address_size 64\nthis is not ptx\n")
	r.fails("ModuleLoadData of no PTX", err, driver.InvalidPTX)
	if log == "" {
		r.Error("ModuleLoadData of no PTX: got no log of the compiler")
	}
	r.Logf("log of the compiler: %s", log)
	m, log, err := r.ModuleLoadData(r.ctx, PTX)
	if err != nil {
		r.Fatalf("%v\n%s", err, log)
	}
	_, err = r.ModuleGetFunction(r.ctx, m, "filler")
	r.fails("ModuleGetFunction of a name that is not there", err, driver.NotFound)
	r.check(r.ModuleUnload(r.ctx, m))
	r.fails("ModuleUnload of none", r.ModuleUnload(r.ctx, 0))
}

func testLaunchFails(r *rig) {
	f := r.fill()
	p := r.alloc(64)
	one := driver.Dim3{X: 1, Y: 1, Z: 1}
	most := uint32(must(r.DeviceGetAttribute(driver.MaxThreadsPerBlock, r.dev))(r.T))
	r.fails("a block that is too large", r.LaunchKernel(r.ctx, f, one, driver.Dim3{X: most + 1, Y: 1, Z: 1}, 0, r.s, fillArgs(p, 1, 16)), driver.InvalidValue)
	r.fails("an empty grid", r.LaunchKernel(r.ctx, f, driver.Dim3{X: 0, Y: 1, Z: 1}, one, 0, r.s, fillArgs(p, 1, 16)), driver.InvalidValue)
	r.fails("no kernel", r.LaunchKernel(r.ctx, 0, one, one, 0, r.s, nil))
	// The stream works after all that.
	r.check(r.LaunchKernel(r.ctx, f, one, driver.Dim3{X: 16, Y: 1, Z: 1}, 0, r.s, fillArgs(p, 5, 16)))
	r.equal("fill", r.read(p, 64), words(5, 16))
}

func testGraph(r *rig) {
	f := r.fill()
	const n = 256
	p, q := r.alloc(4*n), r.alloc(4*n)
	r.check(r.MemsetD8Async(r.ctx, p, 0, 4*n, r.s))
	r.check(r.MemsetD8Async(r.ctx, q, 0, 4*n, r.s))
	r.sync()
	r.found(r.StreamBeginCapture(r.ctx, r.s))
	r.check(r.LaunchKernel(r.ctx, f, driver.Dim3{X: 4, Y: 1, Z: 1}, driver.Dim3{X: 64, Y: 1, Z: 1}, 0, r.s, fillArgs(p, 77, n)))
	r.check(r.MemcpyDtoDAsync(r.ctx, q, p, 4*n, r.s))
	r.check(r.MemsetD32Async(r.ctx, p, 78, n, r.s))
	g := must(r.StreamEndCapture(r.ctx, r.s))(r.T)
	exec, err := r.GraphInstantiate(r.ctx, g)
	r.found(err)
	r.check(r.GraphDestroy(r.ctx, g)) // the executable graph is a copy
	r.holds("what was only captured", q, 0, 4*n)
	for range 2 {
		r.check(r.MemsetD8Async(r.ctx, q, 0, 4*n, r.s))
		r.check(r.GraphLaunch(r.ctx, exec, r.s))
		r.equal("the copy", r.read(q, 4*n), words(77, n))
		r.equal("the memset", r.read(p, 4*n), words(78, n))
	}
	r.check(r.GraphExecDestroy(r.ctx, exec))
	_, err = r.StreamEndCapture(r.ctx, r.s)
	r.fails("StreamEndCapture without a capture", err)
	r.fails("GraphLaunch of none", r.GraphLaunch(r.ctx, 0, r.s))
}
