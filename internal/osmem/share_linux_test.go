package osmem

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mustShare(t *testing.T, size int) *Shared {
	t.Helper()
	s, err := NewShared("osmem test", size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

// mustMemfd returns a memfd with these seals, of which size bytes are there.
func mustMemfd(t *testing.T, size, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("foreign", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fallocate(fd, 0, 0, int64(size)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestSharedIsReadThroughItsDescriptor(t *testing.T) {
	s := mustShare(t, 3<<20)
	view, err := MapShared(s.Fd(), len(s.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string][]byte{"owner": s.Bytes(), "reader": view} {
		if at := uintptr(unsafe.Pointer(&m[0])); at%hugeBytes != 0 {
			t.Errorf("%s's mapping: got address %#x, want a multiple of 2 MiB", name, at)
		}
	}
	copy(s.Bytes()[1<<20:], "written after it was mapped")
	if !bytes.Equal(view, s.Bytes()) {
		t.Error("the reader sees other bytes than the owner")
	}
	want := bytes.Clone(s.Bytes())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(view, want) {
		t.Error("the bytes changed when the owner closed")
	}
	if err := Unmap(view[: 1<<20 : 1<<20]); err == nil {
		t.Error("unmap of a part: got no error")
	}
	if err := Unmap(view); err != nil {
		t.Error(err)
	}
	if err := Unmap(view); err == nil {
		t.Error("unmap twice: got no error")
	}
}

// TestSealsHold tries every way to write or to lose bytes except the owner's
// mapping.
func TestSealsHold(t *testing.T) {
	s := mustShare(t, 4<<20)
	size := len(s.Bytes())
	for i := range s.Bytes() {
		s.Bytes()[i] = byte(i * 7)
	}
	want := bytes.Clone(s.Bytes())
	view, err := MapShared(s.Fd(), size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = Unmap(view) }()
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", s.Fd()), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(again) }()
	for name, fd := range map[string]int{"descriptor": s.Fd(), "reopened descriptor": again} {
		for what, try := range map[string]func() error{
			"map for writing": func() error {
				m, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
				if err == nil {
					_ = unix.Munmap(m)
				}
				return err
			},
			"mprotect":                 func() error { return unix.Mprotect(view, unix.PROT_READ|unix.PROT_WRITE) },
			"write":                    func() error { _, err := unix.Pwrite(fd, []byte("x"), 0); return err },
			"shrink":                   func() error { return unix.Ftruncate(fd, 0) },
			"grow":                     func() error { return unix.Ftruncate(fd, 8<<20) },
			"punch hole":               func() error { return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096) },
			"allocate":                 func() error { return unix.Fallocate(fd, 0, int64(size), 4096) },
			"MADV_REMOVE by a reader":  func() error { return unix.Madvise(view, unix.MADV_REMOVE) },
			"MADV_REMOVE by the owner": func() error { return unix.Madvise(s.Bytes(), unix.MADV_REMOVE) },
			"more seals":               func() error { _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); return err },
		} {
			if err := try(); err == nil {
				t.Errorf("%s by the %s: got no error", what, name)
			}
		}
	}
	if !bytes.Equal(view, want) || !bytes.Equal(s.Bytes(), want) {
		t.Error("bytes changed")
	}
	s.Bytes()[5] = 'w'
	if view[5] != 'w' {
		t.Error("the owner's mapping does not write any more")
	}
}

func TestFinishEndsTheRightToWrite(t *testing.T) {
	s := mustShare(t, 2<<20)
	at := unsafe.SliceData(s.Bytes())
	copy(s.Bytes(), "constant")
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if unsafe.SliceData(s.Bytes()) != at {
		t.Error("the address changed")
	}
	if !bytes.HasPrefix(s.Bytes(), []byte("constant")) {
		t.Errorf("got %q, want what was written", s.Bytes()[:8])
	}
	if err := unix.Mprotect(s.Bytes(), unix.PROT_READ|unix.PROT_WRITE); err == nil {
		t.Error("the owner can make it writable again")
	}
	if m, err := unix.Mmap(s.Fd(), 0, len(s.Bytes()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		t.Error("the owner can map it for writing again")
		_ = unix.Munmap(m)
	}
	if err := s.Finish(); err != nil {
		t.Errorf("finish twice: got %v", err)
	}
	view, err := MapShared(s.Fd(), len(s.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(view, []byte("constant")) {
		t.Error("a later reader sees other bytes")
	}
	if err := Unmap(view); err != nil {
		t.Error(err)
	}
}

func TestMapSharedRefuses(t *testing.T) {
	const size, all = 1 << 20, unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_FUTURE_WRITE
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	sparse, err := unix.MemfdCreate("sparse", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(sparse) }()
	if err := unix.Ftruncate(sparse, 1<<42); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(sparse), unix.F_ADD_SEALS, all); err != nil {
		t.Fatal(err)
	}
	good := mustMemfd(t, size, all)
	closed, err := unix.FcntlInt(uintptr(good), unix.F_DUPFD_CLOEXEC, 500) // a number that no other test gets meanwhile
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(closed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		fd, size int
		want     string
	}{
		{"no seals", mustMemfd(t, size, 0), size, "F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE"},
		{"may shrink", mustMemfd(t, size, all&^unix.F_SEAL_SHRINK), size, "without F_SEAL_SHRINK,"},
		{"may grow", mustMemfd(t, size, all&^unix.F_SEAL_GROW), size, "without F_SEAL_GROW,"},
		{"may be written", mustMemfd(t, size, all&^unix.F_SEAL_FUTURE_WRITE), size, "without F_SEAL_FUTURE_WRITE,"},
		{"smaller than said", good, size + 4096, "got a memfd of 1048576 bytes, want 1052672"},
		{"larger than said", good, size - 1, "want 1048575"},
		{"no size", good, 0, "at least 1 byte"},
		{"negative size", good, -5, "at least 1 byte"},
		{"not there", sparse, 1 << 42, "0 bytes are there"},
		{"pipe", int(r.Fd()), size, "a pipe"},
		{"directory", int(dir.Fd()), size, "a directory"},
		{"file", int(file.Fd()), size, "a file of a disk"},
		{"closed", closed, size, "bad file descriptor"},
		{"impossible", -1, size, "bad file descriptor"},
	} {
		m, err := MapShared(c.fd, c.size)
		if err == nil {
			t.Errorf("%s: got %d bytes, want an error", c.name, len(m))
			_ = Unmap(m)
		} else if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "osmem: ") {
			t.Errorf("%s: got error %q, want one with %q", c.name, err, c.want)
		}
	}
	for name, seals := range map[string]int{"all seals": all, "the stronger seal": all&^unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_WRITE} {
		m, err := MapShared(mustMemfd(t, size, seals), size)
		if err != nil {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if err := Unmap(m); err != nil {
			t.Error(err)
		}
	}
}

func TestNameOfSharedMemory(t *testing.T) {
	s, err := NewShared("a name to find", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(maps, []byte("/memfd:a name to find")) {
		t.Error("the name is not in /proc/self/maps")
	}
	for _, name := range []string{strings.Repeat("x", 300), "a\x00b"} {
		if s, err := NewShared(name, 1); err == nil {
			t.Errorf("name of %d bytes: got no error", len(name))
			_ = s.Close()
		}
	}
}

// TestPopulateWithoutTheAdvice: kernels that do not know the advice answer as
// this one does to an undefined number. An emulator accepts it and does
// nothing, as with MADV_NORMAL.
func TestPopulateWithoutTheAdvice(t *testing.T) {
	for name, advice := range map[string]int{"refused": 12345, "ignored": unix.MADV_NORMAL} {
		t.Run(name, func(t *testing.T) { populateWith(t, advice) })
	}
}

func populateWith(t *testing.T, advice int) {
	const size = 3 << 20
	fd, err := unix.MemfdCreate("old kernel", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	m, err := mapAligned(fd, size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = Unmap(m) }()
	if err := populate(fd, m, advice); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Blocks*512 != size {
		t.Errorf("got %d bytes that are there (%v), want %d", st.Blocks*512, err, size)
	}
}

func TestSharedIsAllThere(t *testing.T) {
	s := mustShare(t, 70<<20) // more than one step
	if n, err := Resident(s.Bytes()); err != nil || n != len(s.Bytes()) {
		t.Errorf("got %d resident bytes (%v), want %d", n, err, len(s.Bytes()))
	}
}

// addressSpace returns how many bytes of addresses this process has.
func addressSpace(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pages * PageSize()
}

// TestAddressesAreGivenBack: what alignment takes more than the file needs is
// not kept, also when the file cannot be mapped.
func TestAddressesAreGivenBack(t *testing.T) {
	const size = 3<<20 + 4096 // no multiple of a huge page, so that the system does not align by itself
	fd := mustMemfd(t, size, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_FUTURE_WRITE)
	before := addressSpace(t)
	var views [][]byte
	for range 300 {
		m, err := MapShared(fd, size)
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(&m[0])); at%hugeBytes != 0 {
			t.Fatalf("got address %#x, want a multiple of 2 MiB", at)
		}
		views = append(views, m)
		if _, err := mapAligned(-1, size, unix.PROT_READ); err == nil {
			t.Fatal("map of no file: got no error")
		}
	}
	for _, m := range views {
		if err := Unmap(m); err != nil {
			t.Fatal(err)
		}
	}
	if more := addressSpace(t) - before; more > 128<<20 { // each round takes 5 MiB twice and keeps 3; the Go runtime takes some
		t.Errorf("got %d bytes of addresses more than before", more)
	}
}

// TestRoomIsCountedOnce: what another call is about to take is not there for
// this one.
func TestRoomIsCountedOnce(t *testing.T) {
	left, err := roomLeft("/")
	if err != nil {
		t.Fatal(err)
	}
	populating.Add(left.bytes)
	defer populating.Add(-left.bytes)
	if s, err := NewShared("too late", 64<<20); !errors.Is(err, ErrNoMemory) {
		t.Errorf("got %v, want ErrNoMemory", err)
		_ = s.Close()
	}
}

// counts returns how many descriptors and mappings this process has.
func counts(t *testing.T) (fds, maps int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(list), bytes.Count(text, []byte("/memfd:"))
}

func TestNothingIsLeftBehind(t *testing.T) {
	fds, maps := counts(t)
	pending := populating.Load()
	for range 20 {
		s, err := NewShared("counted", 2<<20)
		if err != nil {
			t.Fatal(err)
		}
		view, err := MapShared(s.Fd(), len(s.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
		if _, err := MapShared(s.Fd(), 1); err == nil {
			t.Fatal("wrong size: got no error")
		}
		if err := errors.Join(s.Close(), Unmap(view)); err != nil {
			t.Fatal(err)
		}
		if _, err := NewShared("counted", 1<<46); err == nil {
			t.Fatal("64 TiB: got no error")
		}
		if _, err := NewShared(strings.Repeat("x", 300), 1); err == nil {
			t.Fatal("long name: got no error")
		}
	}
	if f, m := counts(t); f != fds || m != maps {
		t.Errorf("got %d descriptors and %d mappings, want %d and %d as before", f, m, fds, maps)
	}
	if n := populating.Load(); n != pending {
		t.Errorf("got %d bytes counted as being populated, want %d", n, pending)
	}
	aligned.Lock()
	defer aligned.Unlock()
	if len(aligned.size) != 0 {
		t.Errorf("got %d mappings in the table, want none", len(aligned.size))
	}
}

// inChild runs the part of this test binary that the environment names, and
// returns how it ended and its output.
func inChild(t *testing.T, part string, extra ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v=false")
	cmd.Env = append(os.Environ(), append(extra, "OSMEM_CHILD="+part, "GOTRACEBACK=none")...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestChild is the main function of the other tests' child processes.
func TestChild(t *testing.T) {
	part, ok := children[os.Getenv("OSMEM_CHILD")]
	if !ok {
		t.Skip("only by another test")
	}
	part(t)
}

var children = map[string]func(*testing.T){
	"write to a view":         func(t *testing.T) { writeToView(t, false) },
	"write after finish":      func(t *testing.T) { writeToView(t, true) },
	"look for the descriptor": lookForDescriptor,
	"without descriptors":     withoutDescriptors,
	"without room for files":  withoutRoomForFiles,
	"without address space":   withoutAddressSpace,
	"up to the group's limit": upToGroupLimit,
}

func writeToView(t *testing.T, finished bool) {
	s := mustShare(t, 4096)
	view := s.Bytes()
	if finished {
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
	} else {
		var err error
		if view, err = MapShared(s.Fd(), len(s.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("before the write")
	view[0] = 1
	fmt.Println("after the write")
}

func TestWriteToReadOnlyMemoryFaults(t *testing.T) {
	for _, part := range []string{"write to a view", "write after finish"} {
		out, err := inChild(t, part)
		if err == nil || !strings.Contains(out, "before the write") || strings.Contains(out, "after the write") || !strings.Contains(out, "SIGSEGV") {
			t.Errorf("%s: got %v, %q, want it to end by SIGSEGV at the write", part, err, out)
		}
	}
}

func lookForDescriptor(t *testing.T) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(to, "memfd:") {
			fmt.Printf("inherited %s\n", to)
		}
	}
	fmt.Printf("looked at %d\n", len(list))
}

func TestChildrenDoNotInherit(t *testing.T) {
	s := mustShare(t, 4096)
	out, err := inChild(t, "look for the descriptor")
	if err != nil || !strings.Contains(out, "looked at") || strings.Contains(out, "inherited") {
		t.Errorf("got %v, %q, want a child without the descriptor", err, out)
	}
	if flags := vmFlags(t, s.Bytes()); !strings.Contains(flags, " dc ") {
		t.Errorf("owner's mapping: got flags %q, want dc (not copied by fork)", flags)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	view, err := MapShared(s.Fd(), len(s.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = Unmap(view) }()
	for name, m := range map[string][]byte{"finished": s.Bytes(), "reader's": view} {
		if flags := vmFlags(t, m); !strings.Contains(flags, " dc ") || strings.Contains(flags, " mw ") {
			t.Errorf("%s mapping: got flags %q, want dc (not copied by fork) without mw (may be made writable)", name, flags)
		}
	}
}

// vmFlags returns the kernel's flags of the mapping that starts with m.
func vmFlags(t *testing.T, m []byte) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), fmt.Sprintf("\n%x-", uintptr(unsafe.Pointer(unsafe.SliceData(m)))))
	_, rest, listed := strings.Cut(rest, "VmFlags:")
	if !found || !listed {
		t.Fatal("the mapping is not in /proc/self/smaps")
	}
	flags, _, _ := strings.Cut(rest, "\n")
	return flags + " "
}

func withoutDescriptors(t *testing.T) {
	fds, _ := counts(t)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: 0}); err != nil {
		t.Fatal(err)
	}
	_, err := NewShared("none left", 4096)
	fmt.Printf("EMFILE %v with %v descriptors: %v\n", errors.Is(err, unix.EMFILE), fds > 0, err)
}

func withoutRoomForFiles(t *testing.T) {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	_, err := NewShared("too large", 2<<20)
	fmt.Printf("memory %v: %v\n", errors.Is(err, ErrNoMemory), err)
	s, err := NewShared("fits", 1<<20)
	fmt.Printf("fits %v\n", err == nil)
	if err == nil {
		_ = s.Close()
	}
}

func withoutAddressSpace(t *testing.T) {
	now := uint64(addressSpace(t))
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: now + 512<<20, Max: now + 512<<20}); err != nil {
		t.Fatal(err)
	}
	fds, maps := counts(t)
	_, err := NewShared("no address", 600<<20)
	fmt.Printf("ENOMEM %v: %v\n", errors.Is(err, unix.ENOMEM), err)
	f, m := counts(t)
	fmt.Printf("left: %d descriptors, %d mappings\n", f-fds, m-maps)
}

func TestLimitsOfTheProcess(t *testing.T) {
	for part, want := range map[string][]string{
		"without descriptors":    {"EMFILE true", "osmem: shared memory of 4096 bytes: create: "},
		"without room for files": {"memory true: ", "RLIMIT_FSIZE", "fits true"},
		"without address space":  {"ENOMEM true", "left: 0 descriptors, 0 mappings"},
	} {
		out, err := inChild(t, part)
		if err != nil {
			t.Errorf("%s: got %v, %q", part, err, out)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: got %q, want %q in it", part, out, w)
			}
		}
	}
}
