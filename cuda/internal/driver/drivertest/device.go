package drivertest

import (
	"github.com/tenure-go/tenure/cuda/internal/driver"
)

func testDevice(r *rig) {
	n := must(r.DeviceGetCount())(r.T)
	seen := map[[16]byte]int{}
	for i := range n {
		dev := must(r.DeviceGet(i))(r.T)
		if name := must(r.DeviceGetName(dev))(r.T); name == "" {
			r.Errorf("device %d has no name", i)
		}
		id := must(r.DeviceGetUUID(dev))(r.T)
		if other, twice := seen[id]; twice || id == [16]byte{} {
			r.Errorf("devices %d and %d have the UUID %x", other, i, id)
		}
		seen[id] = i
		if total := must(r.DeviceTotalMem(dev))(r.T); total < 1<<20 {
			r.Errorf("device %d: got %d bytes of memory", i, total)
		}
		for a, least := range map[driver.Attribute]int{driver.MaxThreadsPerBlock: 512, driver.MaxSharedMemoryPerBlock: 16 << 10, driver.MultiprocessorCount: 1, driver.ComputeCapabilityMajor: 3, driver.UnifiedAddressing: 1} {
			if got := must(r.DeviceGetAttribute(a, dev))(r.T); got < least {
				r.Errorf("device %d: attribute %d: got %d, want at least %d", i, a, got, least)
			}
		}
	}
	if v := must(r.DriverGetVersion())(r.T); v < 11040 {
		r.Errorf("got version %d, want one that Open accepts, 11040 or more", v)
	}
	if r.Name() == "" {
		r.Error("got no name of the driver")
	}
	_, err := r.DeviceGet(n)
	r.fails("DeviceGet of one too many", err, driver.InvalidDevice)
	_, err = r.DeviceGetAttribute(1<<20, r.dev)
	r.fails("DeviceGetAttribute of none", err, driver.InvalidValue)
}

func testContext(r *rig) {
	again := must(r.DevicePrimaryCtxRetain(r.dev))(r.T)
	if again != r.ctx {
		r.Errorf("got another primary context %#x, want %#x", again, r.ctx)
	}
	r.check(r.DevicePrimaryCtxRelease(r.dev))
	// The first reference is left.
	free, total, err := r.MemGetInfo(r.ctx)
	r.check(err)
	if free == 0 || free > total || total > must(r.DeviceTotalMem(r.dev))(r.T) {
		r.Errorf("MemGetInfo: got %d free of %d", free, total)
	}
	_, err = r.MemAlloc(0, 64)
	r.fails("MemAlloc in no context", err, driver.InvalidContext)
	r.check(r.CtxSynchronize(r.ctx))
}

func testPeers(r *rig) {
	n := must(r.DeviceGetCount())(r.T)
	r.fails("CtxEnablePeerAccess of itself", r.CtxEnablePeerAccess(r.ctx, r.ctx))
	src, dst := r.alloc(4096), r.alloc(4096)
	r.write(src, pattern(4096, 1))
	r.check(r.MemcpyPeerAsync(dst, r.ctx, src, r.ctx, 4096, r.s))
	r.equal("MemcpyPeerAsync within a context", r.read(dst, 4096), pattern(4096, 1))
	if n < 2 {
		r.Skip("the rest needs two devices")
	}
	for i := 1; i < n; i++ {
		dev := must(r.DeviceGet(i))(r.T)
		can := must(r.DeviceCanAccessPeer(r.dev, dev))(r.T)
		ctx := must(r.DevicePrimaryCtxRetain(dev))(r.T)
		r.Cleanup(func() { r.check(r.DevicePrimaryCtxRelease(dev)) })
		if can {
			r.check(r.CtxEnablePeerAccess(r.ctx, ctx))
			r.check(r.CtxEnablePeerAccess(r.ctx, ctx)) // a second time is no error
		} else {
			r.fails("CtxEnablePeerAccess where it cannot be", r.CtxEnablePeerAccess(r.ctx, ctx), driver.PeerAccessUnsupp)
		}
		// A copy works either way.
		far := must(r.MemAlloc(ctx, 4096))(r.T)
		r.Cleanup(func() { r.check(r.MemFree(ctx, far)) })
		r.check(r.MemcpyPeerAsync(far, ctx, src, r.ctx, 4096, r.s))
		r.check(r.MemsetD8Async(r.ctx, dst, 0, 4096, r.s))
		r.check(r.MemcpyPeerAsync(dst, r.ctx, far, ctx, 4096, r.s))
		r.equal("there and back", r.read(dst, 4096), pattern(4096, 1))
		if info := must(r.PointerGetAttributes(far))(r.T); info.Ordinal != i || info.Context != ctx {
			r.Errorf("PointerGetAttributes of memory of device %d: got %+v", i, info)
		}
	}
}
