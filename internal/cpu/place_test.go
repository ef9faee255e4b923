package cpu

import (
	"runtime"
	"testing"
)

func TestPlace(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	got, want, ok := place(t)
	if !ok {
		if p := Place(); p != -1 {
			t.Errorf("got processor %d, want -1 on %s/%s", p, runtime.GOOS, runtime.GOARCH)
		}
		return
	}
	if got != want {
		t.Errorf("got processor %d in ten tries, want %d as the system says", got, want)
	}
}
