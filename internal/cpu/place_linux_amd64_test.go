package cpu

import (
	"os"
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

// allowed is what the system says of where this thread may run.
func allowed(t *testing.T) string {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Skip(err)
	}
	_, list, _ := strings.Cut(string(text), "Cpus_allowed:")
	list, _, _ = strings.Cut(list, "\n")
	return strings.TrimSpace(list)
}

// The thread that reads is one of those that run.
func TestRunnable(t *testing.T) {
	if _, err := os.Stat("/proc/loadavg"); err != nil {
		t.Skip(err)
	}
	if n := runnable(); n < 1 || n > 1<<20 {
		t.Errorf("got %d threads that run, want at least this one", n)
	}
	if n := testing.AllocsPerRun(20, func() { runnable() }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
