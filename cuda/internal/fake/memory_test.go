package fake

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

func TestAllocations(t *testing.T) {
	b := start(t, Config{Mode: Lazy, Bytes: 1000})
	_, err := b.MemAlloc(b.ctx[0], 0)
	want(t, err, driver.InvalidValue)
	p := b.alloc(0, 600)
	if p%allocAlign != 0 || p < lowest {
		t.Errorf("got the address %#x", uint64(p))
	}
	_, err = b.MemAlloc(b.ctx[0], 401)
	want(t, err, driver.OutOfMemory)
	q := b.alloc(0, 400)
	b.alloc(1, 1000) // each device has its own bytes
	if free, total, err := b.MemGetInfo(b.ctx[0]); free != 0 || total != 1000 || err != nil {
		t.Errorf("got %d of %d bytes free, %v", free, total, err)
	}
	want(t, b.MemFree(b.ctx[0], p+1), driver.InvalidValue)
	b.ok(b.MemFree(b.ctx[0], q))
	want(t, b.MemFree(b.ctx[0], q), driver.InvalidValue)
	if free, _, _ := b.MemGetInfo(b.ctx[0]); free != 400 {
		t.Errorf("got %d bytes free, want 400", free)
	}
	for _, err := range []error{
		b.MemsetD8Async(b.ctx[0], q, 0, 1, 1),
		b.MemsetD8Async(b.ctx[0], p+599, 0, 2, 1),
		b.MemcpyDtoDAsync(b.ctx[0], p, p+1000, 1, 1),
		b.MemcpyDtoDAsync(b.ctx[0], 0, p, 1, 1),
		b.MemcpyHtoDAsync(b.ctx[0], p, 0, 1, 1),
		b.MemcpyDtoHAsync(b.ctx[0], address([]byte{1}), p+600, 1, 1),
	} {
		want(t, err, driver.InvalidValue)
	}
	b.ok(b.CtxSynchronize(b.ctx[0])) // a refused copy does no harm
}

func TestReusedAddresses(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		b := start(t, Config{Mode: Eager, ReuseAddresses: reuse})
		p := b.alloc(0, 600)
		b.ok(b.MemFree(b.ctx[0], p))
		if q := b.alloc(0, 500); (q == p) != reuse {
			t.Errorf("ReuseAddresses %v: got %#x after %#x", reuse, q, p)
		}
		r, err := b.MemAddressReserve(small, 0)
		b.ok(err)
		b.ok(b.MemAddressFree(r, small))
		q, err := b.MemAddressReserve(small, 0)
		b.ok(err)
		if (q == r) != reuse {
			t.Errorf("ReuseAddresses %v: got the reservation %#x after %#x", reuse, q, r)
		}
	}
}

// TestMemFreeWaits: the work that uses the memory is done.
func TestMemFreeWaits(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	CheckReports(t, b.Machine)
	p, q := b.alloc(0, 8), b.alloc(0, 8)
	s := b.stream(0, driver.StreamNonBlocking)
	b.ok(b.MemsetD8Async(b.ctx[0], p, 3, 8, s))
	b.ok(b.MemcpyDtoDAsync(b.ctx[0], q, p, 8, s))
	n := b.Synchronising()
	b.ok(b.MemFree(b.ctx[0], p))
	if b.Synchronising() != n+1 {
		t.Error("MemFree is not counted as a synchronising call")
	}
	if got := b.get(0, q, 8); got[7] != 3 {
		t.Errorf("got %v", got)
	}
}

// TestPeerAccess: a kernel or memset of one device needs peer access to memory
// of another, a peer copy does not.
func TestPeerAccess(t *testing.T) {
	b := start(t, Config{Mode: Eager, Peer: func(d, p int) bool { return d == 1 }})
	p, q := b.alloc(0, 8), b.alloc(1, 8)
	b.put(0, p, []byte("abcdefgh"))
	b.ok(b.MemcpyPeerAsync(q, b.ctx[1], p, b.ctx[0], 8, driver.LegacyStream))
	if got := b.get(1, q, 8); string(got) != "abcdefgh" {
		t.Errorf("got %q", got)
	}
	can, err := b.DeviceCanAccessPeer(1, 0)
	b.ok(err)
	cannot, err := b.DeviceCanAccessPeer(0, 1)
	b.ok(err)
	if !can || cannot {
		t.Errorf("got access %v of 1 to 0 and %v of 0 to 1", can, cannot)
	}
	want(t, b.CtxEnablePeerAccess(b.ctx[0], b.ctx[1]), driver.PeerAccessUnsupp)
	want(t, b.CtxEnablePeerAccess(b.ctx[0], b.ctx[0]), driver.InvalidContext)
	b.ok(b.CtxEnablePeerAccess(b.ctx[1], b.ctx[0]))
	b.ok(b.CtxEnablePeerAccess(b.ctx[1], b.ctx[0]))
}

// TestUnwritten: bytes that nobody wrote are reported where the host sees
// them, and copies on the device carry the knowledge along.
func TestUnwritten(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		p, q := b.alloc(0, 100), b.alloc(0, 100)
		b.put(0, p+13, []byte("abcdefghijklm"))
		b.ok(b.MemcpyDtoDAsync(b.ctx[0], q+3, p+10, 20, driver.LegacyStream))
		b.ok(b.CtxSynchronize(b.ctx[0]))
		b.quiet()
		if got := b.get(0, q+6, 13); string(got) != "abcdefghijklm" {
			t.Errorf("got %q", got)
		}
		b.quiet()
		got := b.get(0, q+5, 15)
		if want := "\xa5abcdefghijklm\xa5"; string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.reported(Unwritten)
	})
}

func TestForget(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	p := b.alloc(0, 100)
	b.put(0, p, make([]byte, 100))
	b.Forget(p+10, 20)
	b.get(0, p, 10)
	b.get(0, p+30, 70)
	b.quiet()
	b.get(0, p+29, 1)
	b.reported(Unwritten)
}

// TestLargeMemory: memory that is a mapping is like other memory, also once it
// is exported.
func TestLargeMemory(t *testing.T) {
	b := start(t, Config{Mode: Eager, Bytes: 3 * mappedBytes})
	CheckReports(t, b.Machine)
	for range 3 {
		p := b.alloc(0, mappedBytes+7)
		b.put(0, p+mappedBytes, []byte("abcdefg"))
		if canShare {
			_, err := b.IpcGetMemHandle(b.ctx[0], p)
			b.ok(err)
		}
		if got := b.get(0, p+mappedBytes, 7); string(got) != "abcdefg" {
			t.Errorf("got %q", got)
		}
		b.ok(b.MemFree(b.ctx[0], p))
	}
}

func TestOverlap(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	p := b.alloc(0, 100)
	b.put(0, p, make([]byte, 100))
	b.ok(b.MemcpyDtoDAsync(b.ctx[0], p+10, p, 10, 1))
	b.quiet()
	b.ok(b.MemcpyDtoDAsync(b.ctx[0], p+9, p, 10, 1))
	b.reported(Overlap)
}

// TestHostMemory: pageable memory is read before a copy to the device returns;
// page-locked memory when the copy runs.
func TestHostMemory(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	CheckReports(t, b.Machine)
	p := b.alloc(0, 4)
	v := bytes.Repeat([]byte{1}, 4)
	b.ok(b.MemcpyHtoDAsync(b.ctx[0], p, address(v), 4, 1))
	copy(v, []byte{2, 2, 2, 2})
	if got := b.get(0, p, 4); got[0] != 1 {
		t.Errorf("pageable: got %d, want 1, as it was at the call", got[0])
	}
	h, err := b.MemHostAlloc(b.ctx[0], 100)
	b.ok(err)
	pinned := hostBytes(h, 100)
	pinned[50] = 1
	b.ok(b.MemcpyHtoDAsync(b.ctx[0], p, h+50, 1, 1))
	pinned[50] = 2
	if got := b.get(0, p, 1); got[0] != 2 {
		t.Errorf("page-locked: got %d, want 2, as it was when the copy ran", got[0])
	}
	b.ok(b.MemsetD8Async(b.ctx[0], p, 9, 4, 1))
	b.ok(b.MemcpyDtoHAsync(b.ctx[0], h, p, 4, 1))
	if pinned[0] == 9 {
		t.Error("a copy to page-locked memory ran at its call")
	}
	b.ok(b.StreamSynchronize(b.ctx[0], 1))
	if pinned[0] != 9 {
		t.Error("a copy to page-locked memory did not run")
	}
	for at, typ := range map[driver.Pointer]driver.MemoryType{
		driver.Pointer(h) + 99: driver.TypeHost, p + 3: driver.TypeDevice, p + 4: driver.TypeUnknown,
		driver.Pointer(address(v)): driver.TypeUnknown,
	} {
		if i, err := b.PointerGetAttributes(at); i.Type != typ || err != nil {
			t.Errorf("got type %d at %#x, want %d", i.Type, uint64(at), typ)
		}
	}
	b.ok(b.MemFreeHost(b.ctx[0], h))
	want(t, b.MemFreeHost(b.ctx[0], h), driver.InvalidValue)
}

// TestFreedHostMemory: a copy that has not run when its page-locked memory is
// freed fails.
func TestFreedHostMemory(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	p := b.alloc(0, 4)
	h, err := b.MemHostAlloc(b.ctx[0], 100)
	b.ok(err)
	b.ok(b.MemcpyHtoDAsync(b.ctx[0], p, h, 4, 1))
	b.ok(b.MemFreeHost(b.ctx[0], h))
	want(t, b.CtxSynchronize(b.ctx[0]), driver.IllegalAddress)
	b.reported(Fault)
}

func TestManaged(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	CheckReports(t, b.Machine)
	p, err := b.MemAllocManaged(b.ctx[0], 8)
	b.ok(err)
	info, err := b.PointerGetAttributes(p)
	b.ok(err)
	if !info.Managed || info.Context != b.ctx[0] {
		t.Errorf("got %+v", info)
	}
	copy(hostBytes(uintptr(p), 8), "fromhost")
	if got := b.get(1, p, 8); string(got) != "fromhost" {
		t.Errorf("got %q on the other device", got)
	}
	b.ok(b.MemsetD8Async(b.ctx[0], p, 'x', 4, 1))
	b.ok(b.CtxSynchronize(b.ctx[0]))
	if got := string(hostBytes(uintptr(p), 8)); got != "xxxxhost" {
		t.Errorf("got %q on the host", got)
	}
	b.ok(b.MemFree(b.ctx[0], p))
}

func TestRows(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		CheckReports(t, b.Machine)
		p, q := b.alloc(0, 30), b.alloc(0, 30)
		in := []byte("ab--cd--ef")
		b.ok(b.Memcpy2DAsync(b.ctx[0], driver.Copy2D{Dst: p, DstPitch: 10, SrcHost: address(in), SrcPitch: 4, Width: 2, Height: 3}, 1))
		b.ok(b.Memcpy2DAsync(b.ctx[0], driver.Copy2D{Dst: q + 1, DstPitch: 2, Src: p, SrcPitch: 10, Width: 2, Height: 3}, 1))
		out := []byte("..........")
		b.ok(b.Memcpy2DAsync(b.ctx[0], driver.Copy2D{DstHost: address(out), DstPitch: 3, Src: q + 1, SrcPitch: 2, Width: 2, Height: 3}, 1))
		if string(out) != "ab.cd.ef.." {
			t.Errorf("got %q", out)
		}
		want(t, b.Memcpy2DAsync(b.ctx[0], driver.Copy2D{Dst: q, DstPitch: 1, Src: p, SrcPitch: 10, Width: 2, Height: 3}, 1), driver.InvalidValue)
		want(t, b.Memcpy2DAsync(b.ctx[0], driver.Copy2D{Dst: q, Width: 2, Height: 1}, 1), driver.InvalidValue)
		want(t, b.Memcpy2DAsync(b.ctx[0], driver.Copy2D{Dst: q, DstPitch: 15, Src: p, SrcPitch: 10, Width: 2, Height: 3}, 1), driver.InvalidValue)
	})
}

func TestPool(t *testing.T) {
	b := start(t, Config{Mode: Lazy, Bytes: 1000})
	s, other := b.stream(0, 1), b.stream(0, 1)
	p, err := b.MemAllocAsync(b.ctx[0], 600, s)
	b.ok(err)
	b.ok(b.MemsetD8Async(b.ctx[0], p, 1, 600, s))
	b.ok(b.MemFreeAsync(b.ctx[0], p, s))
	want(t, b.MemFreeAsync(b.ctx[0], p, s), driver.InvalidValue)
	q, err := b.MemAllocAsync(b.ctx[0], 700, s) // takes what s frees
	b.ok(err)
	b.quiet()
	if free, _, _ := b.MemGetInfo(b.ctx[0]); free != 300 {
		t.Errorf("got %d bytes free, want 300", free)
	}
	b.ok(b.MemFreeAsync(b.ctx[0], q, s))
	b.ok(b.MemPoolTrimTo(b.pool(), 0))
	if free, _, _ := b.MemGetInfo(b.ctx[0]); free != 300 {
		t.Errorf("got %d bytes free before the stream frees them, want 300", free)
	}
	b.ok(b.StreamSynchronize(b.ctx[0], s))
	if free, _, _ := b.MemGetInfo(b.ctx[0]); free != 1000 {
		t.Errorf("got %d bytes free, want 1000", free)
	}
	// Memory in stream order is not there before its stream says so.
	r, err := b.MemAllocAsync(b.ctx[0], 8, s)
	b.ok(err)
	b.ok(b.MemsetD8Async(b.ctx[0], r, 1, 8, other))
	want(t, b.StreamSynchronize(b.ctx[0], other), driver.IllegalAddress)
	b.reported(Fault)
}

// TestPoolOfPeer: peer access does not include the pool.
func TestPoolOfPeer(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	p, err := b.MemAllocAsync(b.ctx[0], 8, 1)
	b.ok(err)
	b.ok(b.CtxEnablePeerAccess(b.ctx[1], b.ctx[0]))
	b.ok(b.MemsetD8Async(b.ctx[1], p, 0, 8, 1))
	want(t, b.CtxSynchronize(b.ctx[1]), driver.IllegalAddress)
	b.reported(Fault)
}

func (b *bench) pool() driver.Pool {
	p, err := b.DeviceGetDefaultMemPool(0)
	b.ok(err)
	return p
}

// TestPoolUseAfterFree: an operation that is submitted after the free is
// reported although it runs before.
func TestPoolUseAfterFree(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	s, other := b.stream(0, 1), b.stream(0, 1)
	p, err := b.MemAllocAsync(b.ctx[0], 8, s)
	b.ok(err)
	b.ok(b.StreamSynchronize(b.ctx[0], s))
	b.ok(b.MemFreeAsync(b.ctx[0], p, s))
	b.ok(b.MemsetD8Async(b.ctx[0], p, 1, 8, other))
	want(t, b.StreamSynchronize(b.ctx[0], other), driver.IllegalAddress)
	if r := b.TakeReports(); len(r) != 1 || !strings.Contains(r[0].Text, "freed before") {
		t.Errorf("got %v", r)
	}
}

func TestBits(t *testing.T) {
	for at := range uint64(20) {
		for n := range uint64(40) {
			bits := make([]byte, 10)
			setBits(bits, at, n)
			for i := range uint64(80) {
				if bit(bits, i) != (i >= at && i < at+n) {
					t.Fatalf("setBits(%d, %d): bit %d is %v", at, n, i, bit(bits, i))
				}
			}
			if f := firstClear(bits, at, n+1); f != n {
				t.Fatalf("firstClear(%d, %d): got %d", at, n+1, f)
			}
			dst := bytes.Repeat([]byte{0xff}, 10)
			copyBits(dst, 5, bits, at, n+1)
			if f := firstClear(dst, 5, n+1); f != n {
				t.Fatalf("copyBits(%d, %d): the first clear bit is %d", at, n+1, f)
			}
		}
	}
}
