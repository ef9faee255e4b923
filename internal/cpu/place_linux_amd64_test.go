package cpu

import (
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
