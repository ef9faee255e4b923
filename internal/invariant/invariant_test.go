package invariant

import (
	"strings"
	"testing"
	"unsafe"
)

func TestFailfSaysBug(t *testing.T) {
	defer func() {
		got, _ := recover().(string)
		if want := "BUG: memory: count is -1"; got != want {
			t.Errorf("panic text: got %q, want %q", got, want)
		}
	}()
	Failf("memory: count is %d", -1)
}

func TestCanaryFindsTheFirstChangedByte(t *testing.T) {
	b := make([]byte, 64)
	SetCanary(b)
	if got := CheckCanary(b); got != -1 {
		t.Fatalf("fresh canary: got a change at %d, want none", got)
	}
	b[17], b[40] = 0, 0
	if got := CheckCanary(b); got != 17 {
		t.Errorf("changed canary: got %d, want 17", got)
	}
	Poison(b)
	for i, c := range b {
		if c != PoisonByte {
			t.Fatalf("poison: got %#x at %d, want %#x", c, i, PoisonByte)
		}
	}
}

func TestSite(t *testing.T) {
	s := Here(0)
	if !Enabled {
		if unsafe.Sizeof(s) != 0 || s.String() != "" {
			t.Errorf("site without the tag: got %d bytes and %q, want nothing", unsafe.Sizeof(s), s.String())
		}
		return
	}
	first, _, _ := strings.Cut(s.String(), "\n")
	if !strings.Contains(first, "invariant.TestSite (") || !strings.Contains(first, "invariant_test.go:") {
		t.Errorf("site: got first frame %q, want this test", first)
	}
	if strings.Contains(s.String(), "testing.tRunner") {
		t.Errorf("site: got %q, want no frames of package testing", s)
	}
}
