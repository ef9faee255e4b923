package cpu

import (
	"bytes"
	"math/bits"
	"runtime"
	"syscall"
	"unsafe"
)

func hasRDTSCP() bool

// readAux returns what the system keeps in the register that is read along
// with the clock.
func readAux() uint32

var placed = hasRDTSCP()

// Place returns the number of the processor that the caller runs on at the
// moment, or -1 where that cannot be told in a few nanoseconds. Linux keeps
// it where programs can read it.
func Place() int {
	if !placed {
		return -1
	}
	return int(readAux() & 0xfff)
}

// processors is a set of processors, as the system takes it.
type processors [16]uint64

func (p *processors) count() (n int) {
	for _, word := range p {
		n += bits.OnesCount64(word)
	}
	return n
}

// ask reads or sets on which processors the calling thread may run.
func (p *processors) ask(call uintptr) bool {
	_, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*p), uintptr(unsafe.Pointer(p)))
	return errno == 0
}

// Leave moves the calling thread to another processor if one of those that it
// may run on must be idle, and reports whether it did. It is for a thread that
// shares its processor with another one that runs.
func Leave() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all processors
	if !all.ask(syscall.SYS_SCHED_GETAFFINITY) {
		return false
	}
	at, n := Place(), runnable()
	if at < 0 || n == 0 || n > all.count() {
		return false
	}
	others := all
	others[at/64] &^= 1 << (at % 64)
	// The system moves a thread that may not stay; afterwards it may run where it could before.
	return others.count() > 0 && others.ask(syscall.SYS_SCHED_SETAFFINITY) && all.ask(syscall.SYS_SCHED_SETAFFINITY)
}

var loadavg = [...]byte{'/', 'p', 'r', 'o', 'c', '/', 'l', 'o', 'a', 'd', 'a', 'v', 'g', 0}

// runnable returns how many threads of the system run or could, this one among
// them; 0 if that cannot be told. It is what stands before the slash in
// "0.20 0.18 0.12 1/80 11206".
func runnable() (n int) {
	const cwd = -100
	at := cwd
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&loadavg)), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	var text [64]byte
	size, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&text)), uintptr(len(text)))
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	if errno != 0 {
		return 0
	}
	before, _, _ := bytes.Cut(text[:size], []byte{'/'})
	for _, c := range before[bytes.LastIndexByte(before, ' ')+1:] {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}
