package cpu

import (
	"runtime"
	"syscall"
	"unsafe"
)

func hasRDTSCP() bool

// readAux returns the system's number in the register that is read along with
// the clock.
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

// ask reads or sets on which processors the calling thread may run.
func (p *processors) ask(call uintptr) bool {
	_, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*p), uintptr(unsafe.Pointer(p)))
	return errno == 0
}

// Leave moves the calling thread to another processor, and reports whether it
// did: this may be the only one that it is allowed to run on. It is for a
// thread that shares its processor with another one that runs.
func Leave() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all processors
	at := Place()
	if at < 0 || at >= 64*len(all) || !all.ask(syscall.SYS_SCHED_GETAFFINITY) {
		return false
	}
	others := all
	others[at/64] &^= 1 << (at % 64)
	// The system moves a thread that may not stay, and refuses an empty set.
	// Afterwards the thread may run where it could before.
	return others.ask(syscall.SYS_SCHED_SETAFFINITY) && all.ask(syscall.SYS_SCHED_SETAFFINITY) && Place() != at
}
