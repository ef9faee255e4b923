package fake

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// mapped reserves, creates, maps and opens n bytes of device 0.
func (b *bench) mapped(n uint64) (driver.Pointer, driver.Memory) {
	b.t.Helper()
	p, err := b.MemAddressReserve(n, 0)
	b.ok(err)
	h, err := b.MemCreate(n, driver.AllocationProp{})
	b.ok(err)
	b.ok(b.MemMap(p, n, 0, h))
	b.ok(b.MemSetAccess(p, n, 0, driver.AccessReadWrite))
	return p, h
}

func TestVMMLife(t *testing.T) {
	b := start(t, Config{Devices: 1, Mode: Eager})
	CheckReports(t, b.Machine)
	p, h := b.mapped(2 * small)
	b.put(0, p, bytes.Repeat([]byte{7}, 2*small))
	b.ok(b.MemRelease(h)) // the mapping keeps the memory
	if got := b.get(0, p+2*small-1, 1); got[0] != 7 {
		t.Errorf("got %d after the release of the handle, want 7", got[0])
	}
	again, err := b.MemRetainAllocationHandle(p + 100)
	b.ok(err)
	if again != h {
		t.Errorf("got handle %#x, want %#x, the one of the mapping", again, h)
	}
	b.ok(b.MemUnmap(p, 2*small))
	used := func() uint64 {
		free, total, err := b.MemGetInfo(b.ctx[0])
		b.ok(err)
		return total - free
	}
	if used() != 2*small {
		t.Errorf("got %d bytes in use, want %d: a handle is left", used(), 2*small)
	}
	// Another address, the same bytes.
	q, err := b.MemAddressReserve(4*small, 0)
	b.ok(err)
	b.ok(b.MemMap(q+small, 2*small, 0, again))
	b.ok(b.MemSetAccess(q+small, 2*small, 0, driver.AccessRead))
	if got := b.get(0, q+small, 1); got[0] != 7 {
		t.Errorf("got %d at another address, want 7", got[0])
	}
	b.ok(b.MemUnmap(q+small, 2*small))
	b.ok(b.MemRelease(again))
	if used() != 0 {
		t.Errorf("got %d bytes in use at the end", used())
	}
	b.ok(b.MemAddressFree(p, 2*small))
	b.ok(b.MemAddressFree(q, 4*small))
	b.ok(b.DevicePrimaryCtxRelease(0))
	if l := b.Live(); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
}

func TestVMMErrors(t *testing.T) {
	b := start(t, Config{Mode: Eager, Bytes: 16 * small, Peer: func(d, p int) bool { return d == 0 }})
	p, h := b.mapped(2 * small)
	spare, err := b.MemAddressReserve(4*small, 0)
	b.ok(err)
	_, err = b.MemCreate(small+1, driver.AllocationProp{})
	want(t, err, driver.InvalidValue)
	_, err = b.MemCreate(0, driver.AllocationProp{})
	want(t, err, driver.InvalidValue)
	_, err = b.MemCreate(small, driver.AllocationProp{Device: 2})
	want(t, err, driver.InvalidDevice)
	_, err = b.MemCreate(15*small, driver.AllocationProp{})
	want(t, err, driver.OutOfMemory)
	_, err = b.MemAddressReserve(small, 3*small)
	want(t, err, driver.InvalidValue)
	_, err = b.MemAddressReserve(1<<48, 0)
	want(t, err, driver.OutOfMemory)
	for what, err := range map[string]error{
		"map over a mapping":         b.MemMap(p+small, small, 0, h),
		"map outside":                b.MemMap(spare+4*small, small, 0, h),
		"map across the end":         b.MemMap(spare+3*small, 2*small, 0, h),
		"map more than there is":     b.MemMap(spare, 3*small, 0, h),
		"map with an offset":         b.MemMap(spare, small, small, h),
		"map a misaligned address":   b.MemMap(spare+512, small, 0, h),
		"map an unknown handle":      b.MemMap(spare, small, 0, 77),
		"unmap a part":               b.MemUnmap(p, small),
		"unmap what is not mapped":   b.MemUnmap(spare, small),
		"access of nothing":          b.MemSetAccess(spare, small, 0, driver.AccessRead),
		"access of a part":           b.MemSetAccess(p, small, 0, driver.AccessRead),
		"access 2":                   b.MemSetAccess(p, 2*small, 0, 2),
		"free a mapped reservation":  b.MemAddressFree(p, 2*small),
		"free a part":                b.MemAddressFree(spare, 2*small),
		"free what is not reserved":  b.MemAddressFree(spare+small, 3*small),
		"release an unknown handle":  b.MemRelease(77),
		"retain at another address":  second(b.MemRetainAllocationHandle(spare)),
		"export what is not to be":   second(b.MemExportToShareableHandle(h)),
		"set access of a peer twice": b.MemSetAccess(p, 2*small, 0, 5),
	} {
		if err == nil {
			t.Errorf("%s: got no error", what)
			continue
		}
		want(t, err, driver.InvalidValue)
	}
	want(t, b.MemSetAccess(p, 2*small, 1, driver.AccessRead), driver.InvalidDevice)
	b.ok(b.MemRelease(h))
	want(t, b.MemRelease(h), driver.InvalidValue)
	b.ok(b.MemUnmap(p, 2*small))
	want(t, b.MemUnmap(p, 2*small), driver.InvalidValue)
	b.ok(b.MemAddressFree(p, 2*small))
	want(t, b.MemAddressFree(p, 2*small), driver.InvalidValue)
}

func second[T any](_ T, err error) error { return err }

// TestAccess: without the right, work fails when it runs and takes its context
// along.
func TestAccess(t *testing.T) {
	for _, c := range []struct {
		name  string
		right driver.Access
		write bool
		fails bool
	}{
		{"nothing, read", driver.AccessNone, false, true},
		{"read, read", driver.AccessRead, false, false},
		{"read, write", driver.AccessRead, true, true},
		{"both, write", driver.AccessReadWrite, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, Config{Mode: Lazy})
			p, _ := b.mapped(small)
			b.put(0, p, make([]byte, small))
			b.ok(b.MemSetAccess(p, small, 1, c.right))
			q := b.alloc(1, small)
			dst, src := q, p
			if c.write {
				dst, src = p, q
			}
			s := b.stream(1, driver.StreamNonBlocking)
			b.ok(b.MemcpyDtoDAsync(b.ctx[1], dst, src, small, s))
			if !c.fails {
				b.ok(b.StreamSynchronize(b.ctx[1], s))
				b.quiet()
				return
			}
			want(t, b.StreamSynchronize(b.ctx[1], s), driver.IllegalAddress)
			want(t, b.MemsetD8Async(b.ctx[1], q, 0, 1, s), driver.IllegalAddress)
			_, err := b.StreamCreate(b.ctx[1], 0, 0)
			want(t, err, driver.IllegalAddress)
			b.reported(Fault)
			b.get(0, p, small) // the other device is not concerned
			// A new context works.
			b.ok(b.DevicePrimaryCtxRelease(1))
			b.ctx[1] = b.context(1)
			b.put(1, b.alloc(1, 10), make([]byte, 10))
		})
	}
}

// TestAdjacentMappings: mappings that follow each other are one range for
// copies.
func TestAdjacentMappings(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	CheckReports(t, b.Machine)
	p, err := b.MemAddressReserve(3*small, 0)
	b.ok(err)
	for i := range driver.Pointer(3) {
		h, err := b.MemCreate(small, driver.AllocationProp{})
		b.ok(err)
		b.ok(b.MemMap(p+i*small, small, 0, h))
		b.ok(b.MemRelease(h))
	}
	b.ok(b.MemSetAccess(p, 3*small, 0, driver.AccessReadWrite))
	in := make([]byte, 3*small)
	for i := range in {
		in[i] = byte(i * 7 >> 3)
	}
	b.put(0, p, in)
	q := b.alloc(0, 3*small)
	b.ok(b.MemcpyDtoDAsync(b.ctx[0], q, p, 3*small, driver.LegacyStream))
	if got := b.get(0, q, 3*small); !bytes.Equal(got, in) {
		t.Error("the bytes differ")
	}
	base, n, err := b.MemGetAddressRange(b.ctx[0], p+small+5)
	b.ok(err)
	if base != p+small || n != small {
		t.Errorf("got the range %#x, %d", base, n)
	}
	b.ok(b.MemUnmap(p, 3*small)) // the whole range at once
}

// TestUnmapDoesNotWait: work that was submitted before fails.
func TestUnmapDoesNotWait(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	p, _ := b.mapped(small)
	b.ok(b.MemsetD8Async(b.ctx[0], p, 1, small, driver.LegacyStream))
	b.ok(b.MemUnmap(p, small))
	want(t, b.CtxSynchronize(b.ctx[0]), driver.IllegalAddress)
	b.reported(Fault)
}
