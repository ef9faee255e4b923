package cpu

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// sysGetcpu is the number of the call, which package syscall does not have.
const sysGetcpu = 309

// place reads where this thread is in both ways, until it has not moved
// between them.
func place(t *testing.T) (got, want int, ok bool) {
	if !hasRDTSCP() {
		return 0, 0, false
	}
	for range 10 {
		got = Place()
		var n uint32
		if _, _, errno := syscall.RawSyscall(sysGetcpu, uintptr(unsafe.Pointer(&n)), 0, 0); errno != 0 {
			t.Skipf("getcpu: %v", errno)
		}
		if want = int(n); got == want {
			break
		}
	}
	return got, want, true
}

// allowed returns the system's list of processors on which this thread may
// run.
func allowed(t *testing.T) string {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Skip(err)
	}
	_, list, _ := strings.Cut(string(text), "Cpus_allowed:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list)
}

// A thread moves whenever another processor is left to it, and stays otherwise.
func TestLeaveOnlyProcessor(t *testing.T) {
	runtime.LockOSThread() // for good: the thread ends with the test
	if !hasRDTSCP() {
		t.Skip("the processor cannot tell where a thread is")
	}
	before := allowed(t)
	if got, want := Leave(), runtime.NumCPU() > 1; got != want {
		t.Errorf("got %t with %d processors, want %t", got, runtime.NumCPU(), want)
	}
	for range 10 {
		var all, one processors
		if !all.ask(syscall.SYS_SCHED_GETAFFINITY) {
			t.Skip("the system does not say where a thread may run")
		}
		at := Place()
		one[at/64] = 1 << (at % 64)
		if !one.ask(syscall.SYS_SCHED_SETAFFINITY) {
			t.Fatalf("got no leave to stay on processor %d", at)
		}
		only := allowed(t)
		if Leave() {
			t.Errorf("got a move from processor %d, the only one allowed", at)
		}
		if after := allowed(t); after != only {
			t.Errorf("got processors %q allowed afterwards, want %q as before", after, only)
		}
		if !all.ask(syscall.SYS_SCHED_SETAFFINITY) || allowed(t) != before {
			t.Fatalf("got processors %q allowed, want %q", allowed(t), before)
		}
	}
}
