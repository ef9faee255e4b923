package drivertest

import (
	"os"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// vmm skips a test without virtual memory management, and returns the granule.
func (r *rig) vmm(exportable bool) (prop driver.AllocationProp, granule uint64) {
	r.Helper()
	r.has(driver.VirtualMemoryManagementSupported, "virtual memory management")
	if exportable {
		r.has(driver.HandleTypePOSIXDescriptorSupported, "descriptors of memory")
	}
	prop = driver.AllocationProp{Device: r.dev, Exportable: exportable}
	granule, err := r.MemGetAllocationGranularity(prop, driver.GranularityMinimum)
	r.found(err)
	if granule == 0 || granule&(granule-1) != 0 {
		r.Fatalf("got a granule of %d bytes, want a power of two", granule)
	}
	return prop, granule
}

func (r *rig) reserve(size uint64) driver.Pointer {
	r.Helper()
	p := must(r.MemAddressReserve(size, 0))(r.T)
	r.Cleanup(func() { r.check(r.MemAddressFree(p, size)) })
	return p
}

// mapped maps memory with full access until the test ends.
func (r *rig) mapped(p driver.Pointer, size uint64, m driver.Memory) {
	r.Helper()
	r.check(r.MemMap(p, size, 0, m))
	r.Cleanup(func() {
		r.sync()
		r.check(r.MemUnmap(p, size))
	})
	r.check(r.MemSetAccess(p, size, r.dev, driver.AccessReadWrite))
}

func testVirtualMemory(r *rig) {
	prop, g := r.vmm(false)
	if best := must(r.MemGetAllocationGranularity(prop, driver.GranularityRecommended))(r.T); best < g || best%g != 0 {
		r.Errorf("got a recommended granule of %d, want a multiple of the least, %d", best, g)
	}
	// Two allocations side by side are one range.
	p := r.reserve(4 * g)
	if uint64(p)%g != 0 {
		r.Errorf("got the range at %#x, want a multiple of %d", p, g)
	}
	first, second := must(r.MemCreate(g, prop))(r.T), must(r.MemCreate(2*g, prop))(r.T)
	r.mapped(p, g, first)
	r.mapped(p+driver.Pointer(g), 2*g, second)
	r.check(r.MemsetD8Async(r.ctx, p+driver.Pointer(g)-8, 0x11, 16, r.s))
	r.holds("across two allocations", p+driver.Pointer(g)-8, 0x11, 16)
	if info := must(r.PointerGetAttributes(p + 5))(r.T); info.Type != driver.TypeDevice || info.Ordinal != int(r.dev) || info.IPC {
		r.Errorf("PointerGetAttributes: got %+v, want device memory", info)
	}
	// The mapping keeps the memory, and gives a handle again.
	r.check(r.MemRelease(first))
	r.check(r.MemRelease(second))
	r.holds("after the release of the handles", p+driver.Pointer(g)-8, 0x11, 16)
	again := must(r.MemRetainAllocationHandle(p + driver.Pointer(g) + 100))(r.T)
	other := r.reserve(2 * g)
	r.mapped(other, 2*g, again)
	r.check(r.MemRelease(again))
	r.holds("by the retained handle", other, 0x11, 8)
	// Read-only is an access right of its own.
	if err := r.MemSetAccess(p, g, r.dev, driver.AccessRead); err != nil {
		r.Logf("read-only access: %v", err) // "not supported" for memory of the device itself, with some drivers
	}
}

// testAliases maps one allocation at two addresses, and maps an address twice.
func testAliases(r *rig) {
	prop, g := r.vmm(false)
	m := must(r.MemCreate(g, prop))(r.T)
	p, q := r.reserve(g), r.reserve(g)
	r.mapped(p, g, m)
	r.mapped(q, g, m)
	r.check(r.MemsetD8Async(r.ctx, p, 0x21, g, r.s))
	r.holds("the other address", q+driver.Pointer(g)-64, 0x21, 64)
	r.check(r.MemRelease(m))

	other := r.reserve(g)
	for v := range byte(3) {
		m := must(r.MemCreate(g, prop))(r.T)
		r.check(r.MemMap(other, g, 0, m))
		r.check(r.MemSetAccess(other, g, r.dev, driver.AccessReadWrite))
		r.check(r.MemRelease(m))
		r.check(r.MemsetD8Async(r.ctx, other, v+1, g, r.s))
		r.holds("a new mapping", other, v+1, 64)
		r.check(r.MemUnmap(other, g))
	}
}

func testVirtualMemoryFails(r *rig) {
	prop, g := r.vmm(false)
	_, err := r.MemCreate(g+1, prop)
	r.fails("MemCreate of half a granule", err, driver.InvalidValue)
	total := must(r.DeviceTotalMem(r.dev))(r.T)
	_, err = r.MemCreate((4*total+g)/g*g, prop)
	r.fails("MemCreate of four times the memory", err, driver.OutOfMemory)
	_, err = r.MemCreate(g, driver.AllocationProp{Device: 1 << 16})
	r.fails("MemCreate on no device", err, driver.InvalidDevice, driver.InvalidValue)
	r.fails("MemRelease of none", r.MemRelease(0))
	p := r.reserve(2 * g)
	_ = r.MemUnmap(p, g) // of what is not mapped: drivers differ
	m := must(r.MemCreate(g, prop))(r.T)
	r.fails("MemMap of more than there is", r.MemMap(p, 2*g, 0, m))
	r.fails("MemMap between granules", r.MemMap(p+driver.Pointer(g/2), g, 0, m))
	r.mapped(p, g, m)
	r.fails("MemMap where it is mapped", r.MemMap(p, g, 0, m))
	r.check(r.MemRelease(m))
}

// testDescriptors exports memory and imports it in the same process.
func testDescriptors(r *rig) {
	prop, g := r.vmm(true)
	m := must(r.MemCreate(g, prop))(r.T)
	p, q := r.reserve(g), r.reserve(g)
	r.mapped(p, g, m)
	r.check(r.MemsetD8Async(r.ctx, p, 0x31, g, r.s))
	r.sync()
	fd, err := r.MemExportToShareableHandle(m)
	r.found(err)
	file := os.NewFile(uintptr(fd), "memory of the device")
	if file == nil {
		r.Fatalf("got descriptor %d", fd)
	}
	imported, err := r.MemImportFromShareableHandle(fd)
	r.check(err)
	if err := file.Close(); err != nil { // the import does not take the descriptor
		r.Error(err)
	}
	r.mapped(q, g, imported)
	r.holds("imported", q+driver.Pointer(g)-64, 0x31, 64)
	r.check(r.MemsetD8Async(r.ctx, q, 0x32, g, r.s))
	r.holds("written by the importer", p, 0x32, 64)
	r.check(r.MemRelease(imported))
	r.check(r.MemRelease(m))

	prop.Exportable = false
	private := must(r.MemCreate(g, prop))(r.T)
	_, err = r.MemExportToShareableHandle(private)
	r.fails("export of memory that is not exportable", err)
	r.check(r.MemRelease(private))
	// A descriptor of something else.
	null, err := os.Open(os.DevNull)
	r.check(err)
	defer null.Close()
	if imported, err := r.MemImportFromShareableHandle(int(null.Fd())); err == nil {
		r.check(r.MemRelease(imported))
		r.Log("the driver imports a descriptor of " + os.DevNull)
	}
}
