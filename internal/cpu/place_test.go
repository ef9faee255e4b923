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

func TestLeave(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := allowed(t)
	moved, apart := 0, 0
	for range 50 {
		at := Place()
		if Leave() {
			moved++
			if Place() != at {
				apart++
			}
		}
		if after := allowed(t); after != before {
			t.Fatalf("got processors %q allowed afterwards, want %q as before", after, before)
		}
	}
	if moved > 0 && apart == 0 {
		t.Errorf("%d of 50 calls say that they moved the thread, but it was always where it had been", moved)
	}
}
