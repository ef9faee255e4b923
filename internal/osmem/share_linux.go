package osmem

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharedSeals keep the existing writable mapping and refuse every later way to
// write or to lose a byte.
const sharedSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL

// overhead is an upper bound of the memory that populating size bytes takes in
// addition: page tables, the index of the file, and the kernel's batches of
// charges on every core.
func overhead(size int) int64 { return int64(size)/256 + 1<<20 }

// populating is the number of bytes that NewShared has reserved and not yet
// populated, so that concurrent calls do not count the same memory.
var populating atomic.Int64

func newShared(name string, n int) (*Shared, error) {
	if err := roomFor(n); err != nil {
		return nil, err
	}
	defer populating.Add(-int64(n) - overhead(n))
	fd, err := createSealable(name)
	if err != nil {
		return nil, fmt.Errorf("osmem: shared memory of %d bytes: create: %w", n, err)
	}
	s, err := build(fd, n)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("osmem: shared memory of %d bytes: %w", n, err)
	}
	return s, nil
}

// roomFor fails if populating n bytes could make the kernel kill a process. On
// success the bytes are reserved.
func roomFor(n int) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err == nil && uint64(n) > limit.Cur {
		return fmt.Errorf("osmem: shared memory of %d bytes: got a limit of %d bytes for files (RLIMIT_FSIZE), want at least as many: %w", n, limit.Cur, ErrNoMemory)
	}
	need := int64(n) + overhead(n)
	others := populating.Add(need) - need
	r, err := roomLeft("/")
	if err != nil {
		return nil // without /proc the amount is unknown, and populating the pages is the test
	}
	if left := r.bytes - others; left < need {
		populating.Add(-need)
		return fmt.Errorf("osmem: shared memory of %d bytes: got %d available under %s, want %d with page tables: %w", n, max(left, 0), r.by, need, ErrNoMemory)
	}
	return nil
}

func createSealable(name string) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3, or a name that is too long
		fd, err = unix.MemfdCreate(name, flags)
	}
	if errors.Is(err, unix.EINVAL) {
		err = fmt.Errorf("name of %d bytes: %w", len(name), err)
	}
	return fd, err
}

// build makes a Shared of the empty memfd.
func build(fd, n int) (*Shared, error) {
	if err := unix.Ftruncate(fd, int64(n)); err != nil {
		return nil, fmt.Errorf("set the size: %w", err)
	}
	m, err := mapAligned(fd, n, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // advice: without it the memory is slower, not wrong
	err = populate(fd, m, unix.MADV_POPULATE_WRITE)
	if err == nil {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, sharedSeals); err != nil {
			err = fmt.Errorf("seal (Linux 5.1 or newer): %w", err)
		}
	}
	if err != nil {
		_, _ = unmapAligned(m)
		return nil, err
	}
	return &Shared{fd: fd, bytes: m}, nil
}

// populateStep bounds one call, so that a signal does not undo much work.
const populateStep = 64 << 20

// populate allocates every page of m, where a lack of memory is an error; at
// the first access it would be a signal.
func populate(fd int, m []byte, advice int) error {
	for off := 0; off < len(m); {
		err := unix.Madvise(m[off:min(off+populateStep, len(m))], advice)
		switch {
		case err == nil:
			off += populateStep
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL): // before Linux 5.14
			return allocate(fd, len(m))
		default:
			return fmt.Errorf("populate, from byte %d on: %w (%w)", off, err, ErrNoMemory)
		}
	}
	// User-mode emulators accept all advice and do nothing.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Blocks*512 < int64(len(m)) {
		return allocate(fd, len(m))
	}
	return nil
}

// allocate allocates the pages of the file, which suffices for safety; the
// mapping's pages follow at the first access.
func allocate(fd, n int) error {
	for {
		err := unix.Fallocate(fd, 0, 0, int64(n))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("populate: %w (%w)", err, ErrNoMemory)
		}
	}
}

func (s *Shared) finish() error {
	if s.bytes == nil {
		return fmt.Errorf("osmem: finish shared memory: %w", os.ErrClosed)
	}
	at := unsafe.Pointer(unsafe.SliceData(s.bytes))
	// Replaces the writable mapping in one step, so that the address is never
	// free in between.
	if _, err := unix.MmapPtr(s.fd, 0, at, uintptr(len(s.bytes)), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("osmem: finish shared memory of %d bytes: %w", len(s.bytes), err)
	}
	adviseView(s.bytes)
	populateView(s.bytes)
	return nil
}

func (s *Shared) close() error {
	if s.bytes == nil {
		return fmt.Errorf("osmem: close shared memory: %w", os.ErrClosed)
	}
	m, fd := s.bytes, s.fd
	s.bytes, s.fd = nil, -1
	if err := errors.Join(Unmap(m), unix.Close(fd)); err != nil {
		return fmt.Errorf("osmem: close shared memory of %d bytes: %w", len(m), err)
	}
	return nil
}

func mapShared(fd, size int) ([]byte, error) {
	if err := trustworthy(fd, size); err != nil {
		return nil, fmt.Errorf("osmem: map shared memory of %d bytes (descriptor %d): %w", size, fd, err)
	}
	m, err := mapAligned(fd, size, unix.PROT_READ)
	if err != nil {
		return nil, fmt.Errorf("osmem: map shared memory of %d bytes (descriptor %d): %w", size, fd, err)
	}
	adviseView(m)
	return m, nil
}

func adviseView(m []byte) {
	_ = unix.Madvise(m, unix.MADV_DONTFORK)
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
}

func populateView(m []byte) {
	if len(m) == 0 {
		return
	}
	page := uintptr(PageSize())
	first := unsafe.Pointer(unsafe.SliceData(m))
	before := uintptr(first) % page
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(first, -int(before))), uintptr(len(m))+before), unix.MADV_POPULATE_READ)
}

func sharedID(fd int) (FileID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return FileID{}, fmt.Errorf("osmem: shared memory (descriptor %d): %w", fd, err)
	}
	return FileID{Device: uint64(st.Dev), Inode: st.Ino}, nil
}

// trustworthy fails unless every load from a mapping of fd will succeed without
// costs to the reader.
func trustworthy(fd, size int) error {
	if size <= 0 {
		return fmt.Errorf("got size %d, want at least 1 byte", size)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("got %s, want a memfd", fileKind(st.Mode))
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if errors.Is(err, unix.EINVAL) {
		return errors.New("got a file of a disk, want a memfd")
	}
	if err != nil {
		return fmt.Errorf("read the seals: %w", err)
	}
	if missing := missingSeals(seals); missing != "" {
		return fmt.Errorf("got a memfd without %s, want it sealed", missing)
	}
	if st.Size != int64(size) {
		return fmt.Errorf("got a memfd of %d bytes, want %d", st.Size, size)
	}
	// The first load would create a missing page and charge it to the reader.
	if there := st.Blocks * 512; there < st.Size {
		return fmt.Errorf("got a memfd of which %d bytes are there, want all %d", there, st.Size)
	}
	return nil
}

func missingSeals(seals int) string {
	var missing []string
	if seals&unix.F_SEAL_SHRINK == 0 {
		missing = append(missing, "F_SEAL_SHRINK")
	}
	if seals&unix.F_SEAL_GROW == 0 {
		missing = append(missing, "F_SEAL_GROW")
	}
	if seals&(unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_WRITE) == 0 { // the second is stronger: it permits no writable mapping at all
		missing = append(missing, "F_SEAL_FUTURE_WRITE")
	}
	return strings.Join(missing, ", ")
}

func fileKind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	}
	return "something that is no file"
}

// aligned records the mappings that package unix does not know, by their first
// byte.
var aligned struct {
	sync.Mutex
	size map[*byte]int
}

// mapAligned maps all of fd, shared, aligned for huge pages. Forked children of
// this process do not have the mapping: they must never write, and their reads
// would keep the pages.
func mapAligned(fd, size, prot int) ([]byte, error) {
	span := uintptr(size)
	if size >= hugeBytes {
		span += hugeBytes
	}
	// Reserve address space first, then map the file over the aligned part of
	// it.
	start, err := unix.MmapPtr(-1, 0, nil, span, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	page := uintptr(PageSize())
	used := (uintptr(size) + page - 1) / page * page
	skip := uintptr(0)
	if size >= hugeBytes {
		skip = -uintptr(start) & (hugeBytes - 1)
	}
	at, err := unix.MmapPtr(fd, 0, unsafe.Add(start, skip), uintptr(size), prot, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		_ = unix.MunmapPtr(start, span)
		return nil, err
	}
	if skip > 0 {
		_ = unix.MunmapPtr(start, skip)
	}
	if end := skip + used; end < span {
		_ = unix.MunmapPtr(unsafe.Add(start, end), span-end)
	}
	m := unsafe.Slice((*byte)(at), size)
	if err := unix.Madvise(m, unix.MADV_DONTFORK); err != nil {
		_ = unix.MunmapPtr(at, uintptr(size))
		return nil, fmt.Errorf("keep it from forks: %w", err)
	}
	remember(m)
	return m, nil
}

// unmapAligned frees a mapping of mapAligned; done is false if m is none.
func unmapAligned(m []byte) (done bool, err error) {
	first := unsafe.SliceData(m)
	aligned.Lock()
	size, known := aligned.size[first]
	mine := known && len(m) == size && cap(m) == size
	if mine {
		delete(aligned.size, first) // before the address is free, because the next mapping may get it
	}
	aligned.Unlock()
	if !known {
		return false, nil
	}
	if !mine {
		return true, unix.EINVAL
	}
	if err = unix.MunmapPtr(unsafe.Pointer(first), uintptr(size)); err != nil {
		remember(m)
	}
	return true, err
}

func remember(m []byte) {
	aligned.Lock()
	defer aligned.Unlock()
	if aligned.size == nil {
		aligned.size = make(map[*byte]int)
	}
	aligned.size[unsafe.SliceData(m)] = len(m)
}
