package cuda

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
)

// Sizes of an Arena. A block of up to smallBytes is a slot of a chunk of
// chunkBytes, in classes of which there are four between one power of two and
// the next; every class is a multiple of alignment. A larger block is a chunk
// of its own, in whole pages of the device.
const (
	alignment  = 256
	smallBytes = 1 << 20
	chunkBytes = 8 << 20
)

// Arena is the memory of a device for tensors: it obtains chunks from the
// driver and keeps the bytes of ended tensors for the next of their size. A
// kept block is handed out again before the device has finished with it: the
// next work that writes it waits for that. Its methods may be called from any
// goroutine.
type Arena struct {
	d    *Device
	page uint64 // granularity of the driver's chunks

	mu     sync.Mutex
	small  [numSmall]class
	large  map[int]*class // of chunks with one block, by its size
	chunks map[*chunk]struct{}
	stats  ArenaStats
	limit  int64 // of the chunks' bytes, 0 means none
}

// ArenaStats are the statistics of an Arena.
type ArenaStats struct {
	Chunks int   // obtained from the driver
	Bytes  int64 // of the chunks
	Blocks int   // in use
	Class  int64 // bytes of the blocks in use, in their classes
	Kept   int64 // bytes of blocks that are kept for further allocations
	Limit  int64 // of Bytes; 0 means no limit
	Reused int64 // allocations that took a kept block, since the start
	Fresh  int64 // allocations that carved a block out of a chunk
}

// chunk is memory of the driver.
type chunk struct {
	a      *Arena
	at     driver.Pointer
	bytes  uint64
	mem    driver.Memory // 0 if the memory is of MemAlloc
	class  *class        // of its slots
	carved int           // slots that have been blocks
	used   int           // blocks in use
}

func newArena(d *Device) *Arena {
	return &Arena{d: d, large: map[int]*class{}, chunks: map[*chunk]struct{}{}}
}

// classOf returns the size of the block for a request.
func (a *Arena) classOf(n int) int {
	if n > smallBytes {
		page := int(a.pageBytes())
		return (n + page - 1) / page * page
	}
	if n <= 4*alignment {
		return max((n+alignment-1)/alignment, 1) * alignment
	}
	step := 1 << (bits.Len(uint(n-1)) - 3) // a quarter of the power of two below
	return (n + step - 1) / step * step
}

// numSmall is the number of classes of slots: the multiples of alignment up to
// four, and four between each power of two and the next.
const numSmall = 4 + 4*10

// class is the blocks of one size.
type class struct {
	size int
	kept []*block // the one that was freed last at the end
	open *chunk   // has slots that were no block yet; nil if none has
}

// class returns the class of blocks of a size that classOf returned. The caller
// has the lock.
func (a *Arena) class(size int) *class {
	var c *class
	switch {
	case size > smallBytes:
		if c = a.large[size]; c == nil {
			c = new(class)
			a.large[size] = c
		}
	case size <= 4*alignment:
		c = &a.small[size/alignment-1]
	default:
		power := bits.Len(uint(size-1)) - 1 // the size is above 2^power, and at most its double
		c = &a.small[4+4*(power-10)+(size-1-1<<power)>>(power-2)]
	}
	c.size = size
	return c
}

// pageBytes returns the unit of the driver's chunks.
func (a *Arena) pageBytes() uint64 {
	if a.page == 0 {
		a.page = 2 << 20
		if a.d.info.VMM {
			if g, err := a.d.drv.MemGetAllocationGranularity(a.prop(), driver.GranularityMinimum); err == nil && g > 0 {
				a.page = g
			}
		}
	}
	return a.page
}

func (a *Arena) prop() driver.AllocationProp {
	return driver.AllocationProp{Device: a.d.handle, Exportable: true}
}

// Alloc returns a buffer whose contents are undefined, counted under p. The
// caller holds it. It fails with [memory.ErrLimit] when neither the driver nor
// the arena's unused blocks have the bytes.
func (a *Arena) Alloc(bytes int, p memory.Purpose) (*memory.Buffer, error) {
	return a.alloc(bytes, p, nil)
}

// alloc prefers a block that s can write at once, if s is not nil.
func (a *Arena) alloc(bytes int, p memory.Purpose, s *Stream) (*memory.Buffer, error) {
	if a == nil || a.d == nil {
		return nil, fmt.Errorf("cuda: allocate %d bytes: got no arena, want one of Device.Arena: %w", bytes, memory.ErrReleased)
	}
	if err := a.d.usable("allocate"); err != nil {
		return nil, err
	}
	if bytes < 0 || bytes > 1<<46 {
		return nil, fmt.Errorf("cuda: allocate on %s: got %d bytes, want 0 to 2^46", a.d, bytes)
	}
	memory.Reclaim()
	b, err := a.take(a.classOf(bytes), s)
	if err != nil {
		return nil, fmt.Errorf("cuda: allocate %d bytes on %s: %w", bytes, a.d, err)
	}
	buf, err := a.d.mem.Own(&b.Remote, bytes, p)
	if err != nil {
		b.GiveBack()
		return nil, err
	}
	return buf, nil
}

// take returns a block of a class.
func (a *Arena) take(size int, s *Stream) (*block, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.class(size)
	if b := a.kept(c, s); b != nil {
		return b, nil
	}
	b, err := a.carve(c)
	if err == nil || !errors.Is(err, memory.ErrLimit) {
		return b, err
	}
	return a.takeAfterCollection(c, s, err)
}

// looks bounds the search for a block that needs no wait.
const looks = 4

// kept takes a kept block of the class. The caller has the lock.
func (a *Arena) kept(c *class, s *Stream) *block {
	i := len(c.kept) - 1
	if i < 0 {
		return nil
	}
	if s != nil {
		for j := i; j >= 0 && j > i-looks; j-- {
			if c.kept[j].isReadyFor(s) {
				i = j
				break
			}
		}
	}
	b := c.kept[i]
	c.kept = slices.Delete(c.kept, i, i+1)
	a.stats.Reused++
	a.count(b, 1)
	return b
}

// count moves a block between those in use and those that are kept.
func (a *Arena) count(b *block, n int) {
	b.home.(*chunk).used += n
	a.stats.Blocks += n
	a.stats.Class += int64(n * b.bytes)
	a.stats.Kept -= int64(n * b.bytes)
}

// carve makes a block out of a chunk. The caller has the lock.
func (a *Arena) carve(c *class) (*block, error) {
	if c.open != nil {
		return a.slot(c.open), nil
	}
	size := uint64(c.size)
	if c.size <= smallBytes {
		size = chunkBytes
		if c.size <= smallBytes/16 {
			size = chunkBytes / 4
		}
		if page := a.pageBytes(); size%page != 0 {
			size += page - size%page
		}
	}
	k, err := a.obtain(size)
	if err != nil {
		return nil, err
	}
	k.class, c.open = c, k
	return a.slot(k), nil
}

// slot makes a block of the next slot of k that was none yet.
func (a *Arena) slot(k *chunk) *block {
	c := k.class
	b := &block{d: a.d, bytes: c.size, home: k}
	b.Remote = memory.Remote{Device: a.d.mem, Address: uintptr(k.at) + uintptr(k.carved*c.size), Keeper: b}
	if k.carved++; k.carved == int(k.bytes)/c.size {
		c.open = nil
	}
	a.stats.Fresh++
	a.stats.Kept += int64(b.bytes)
	a.count(b, 1)
	return b
}

// obtain gets a chunk from the driver.
func (a *Arena) obtain(size uint64) (*chunk, error) {
	if a.limit > 0 && int64(size) > a.limit-a.stats.Bytes {
		return nil, fmt.Errorf("got %d bytes in chunks of the arena, want at most its limit of %d with %d more: %w", a.stats.Bytes, a.limit, size, memory.ErrLimit)
	}
	c := &chunk{a: a, bytes: size}
	var err error
	if a.d.info.VMM {
		c.at, c.mem, err = a.d.mapMemory(size, a.prop())
	} else {
		c.at, err = a.d.drv.MemAlloc(a.d.ctx, size)
	}
	if err != nil {
		return nil, a.d.fail("obtain a chunk", err)
	}
	a.chunks[c] = struct{}{}
	a.stats.Chunks++
	a.stats.Bytes += int64(size)
	return c, nil
}

// mapMemory creates memory of the device and maps it for reading and writing.
func (d *Device) mapMemory(size uint64, prop driver.AllocationProp) (driver.Pointer, driver.Memory, error) {
	m, err := d.drv.MemCreate(size, prop)
	if err != nil {
		return 0, 0, err
	}
	at, err := d.mapAt(m, size, driver.AccessReadWrite)
	if err != nil {
		_ = d.drv.MemRelease(m)
		return 0, 0, err
	}
	return at, m, nil
}

// mapAt maps memory at an address of its own.
func (d *Device) mapAt(m driver.Memory, size uint64, access driver.Access) (driver.Pointer, error) {
	at, err := d.drv.MemAddressReserve(size, 0)
	if err != nil {
		return 0, err
	}
	if err = d.drv.MemMap(at, size, 0, m); err == nil {
		if err = d.drv.MemSetAccess(at, size, d.handle, access); err == nil {
			return at, nil
		}
		_ = d.drv.MemUnmap(at, size)
	}
	_ = d.drv.MemAddressFree(at, size)
	return 0, err
}

// unmap undoes mapAt.
func (d *Device) unmap(at driver.Pointer, size uint64) error {
	return errors.Join(d.drv.MemUnmap(at, size), d.drv.MemAddressFree(at, size))
}

// giveBack keeps the block for the next allocation of its class.
func (k *chunk) giveBack(b *block) {
	a := k.a
	a.mu.Lock()
	a.count(b, -1)
	k.class.kept = append(k.class.kept, b)
	a.mu.Unlock()
}

// takeAfterCollection is take when the driver has no more memory: it lets go
// what nothing uses, in the order of what that costs. The caller has the lock,
// which is given up meanwhile.
func (a *Arena) takeAfterCollection(c *class, s *Stream, refused error) (*block, error) {
	try := func() (b *block) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if b = a.kept(c, s); b != nil {
			return b
		}
		a.trim()
		b, err := a.carve(c)
		if err != nil {
			refused = err
		}
		return b
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	memory.Reclaim()
	a.d.limbo.poll()
	b := try()
	if b == nil && a.waitForKept() {
		b = try()
	}
	if b == nil {
		memory.CollectUntil(func() bool { b = try(); return b != nil })
	}
	if b == nil {
		return nil, refused
	}
	return b, nil
}

// waitForKept waits for the work that uses kept blocks, because their chunks
// can go only after it. It reports whether any was busy.
func (a *Arena) waitForKept() (busy bool) {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		a.mu.Lock()
		left := false
		for k := range a.chunks {
			for _, b := range k.class.kept {
				if idle, err := b.isIdle(); !idle && err == nil {
					left = true
				}
			}
		}
		a.mu.Unlock()
		if !left {
			return busy
		}
		busy = true
	}
	return busy
}

// Trim gives chunks back to the driver that have no block in use and whose work
// is complete, and returns their bytes.
func (a *Arena) Trim() int64 {
	if a == nil || a.d == nil {
		return 0
	}
	a.d.limbo.poll()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.trim()
}

func (a *Arena) trim() (bytes int64) {
	for k := range a.chunks {
		if k.used > 0 || !k.isIdle() {
			continue
		}
		c := k.class
		c.kept = slices.DeleteFunc(c.kept, func(b *block) bool { return b.home == k })
		if c.open == k {
			c.open = nil
		}
		a.stats.Kept -= int64(k.carved * c.size)
		a.stats.Chunks--
		a.stats.Bytes -= int64(k.bytes)
		bytes += int64(k.bytes)
		delete(a.chunks, k)
		_ = k.release() // the driver refuses only what is not its own, or everything after the device is lost
	}
	return bytes
}

// isIdle reports whether all work that uses the chunk, in which no block is in
// use, is complete.
func (k *chunk) isIdle() bool {
	for _, b := range k.class.kept {
		if b.home != k {
			continue
		}
		if idle, err := b.isIdle(); !idle && err == nil {
			return false
		}
	}
	return true
}

func (c *chunk) release() error {
	d := c.a.d
	if c.mem == 0 {
		return d.drv.MemFree(d.ctx, c.at)
	}
	return errors.Join(d.unmap(c.at, c.bytes), d.drv.MemRelease(c.mem))
}

// SetLimit bounds the bytes that the arena obtains from the driver, and returns
// the previous bound; 0 means none.
func (a *Arena) SetLimit(bytes int64) (old int64) {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old, a.limit = a.limit, max(bytes, 0)
	return old
}

// Stats returns the statistics of the arena.
func (a *Arena) Stats() ArenaStats {
	if a == nil {
		return ArenaStats{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Limit = a.limit
	return s
}

// end gives all chunks back when the device is closed.
func (a *Arena) end() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for c := range a.chunks {
		errs = append(errs, c.release())
		delete(a.chunks, c)
	}
	clear(a.large)
	a.small = [numSmall]class{}
	a.stats = ArenaStats{Reused: a.stats.Reused, Fresh: a.stats.Fresh}
	return errors.Join(errs...)
}
