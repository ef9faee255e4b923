package osmem

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

func mustMap(t *testing.T, size int) []byte {
	t.Helper()
	m, err := Map(size)
	if err != nil {
		t.Fatalf("map %d bytes: %v", size, err)
	}
	t.Cleanup(func() {
		if err := Unmap(m); err != nil {
			t.Errorf("unmap: %v", err)
		}
	})
	return m
}

func TestMapIsZeroedAlignedAndRounded(t *testing.T) {
	page := PageSize()
	for _, size := range []int{1, page - 1, page, page + 1, 3 << 20} {
		m := mustMap(t, size)
		if len(m) < size || len(m)%page != 0 || len(m) >= size+page {
			t.Errorf("map %d: got %d bytes, want the next multiple of %d", size, len(m), page)
		}
		if addr := uintptr(unsafe.Pointer(&m[0])); addr%uintptr(page) != 0 {
			t.Errorf("map %d: got address %#x, want a multiple of %d", size, addr, page)
		}
		for i, c := range m {
			if c != 0 {
				t.Fatalf("map %d: got byte %#x at %d, want 0", size, c, i)
			}
		}
		m[0], m[len(m)-1] = 1, 2
	}
}

func TestMapRefusesImpossibleSizes(t *testing.T) {
	for _, size := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxInt - PageSize()} {
		if m, err := Map(size); err == nil {
			t.Errorf("map %d: got %d bytes, want an error", size, len(m))
		} else if !strings.HasPrefix(err.Error(), "osmem: ") {
			t.Errorf("map %d: got error %q, want the package's name in front", size, err)
		}
	}
}

func TestMapFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	want := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := MapFile(f, len(want))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, -1, len(want) + 1} {
		if _, err := MapFile(f, size); err == nil {
			t.Errorf("map %d of %d bytes: got no error", size, len(want))
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m, want) {
		t.Error("mapped bytes differ from the file's")
	}
	if err := DontNeed(m); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("dontneed: %v", err)
	}
	if !bytes.Equal(m, want) {
		t.Error("after dontneed the mapped bytes differ from the file's")
	}
	if err := Unmap(m); err != nil {
		t.Error(err)
	}
}

func TestResidentFollowsTouches(t *testing.T) {
	page := PageSize()
	m := mustMap(t, 64*page)
	n, err := Resident(m)
	if runtime.GOOS != "linux" {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("resident on %s: got %v, want an error that says unsupported", runtime.GOOS, err)
		}
		return
	}
	if err != nil || n != 0 {
		t.Fatalf("untouched mapping: got %d resident bytes (%v), want 0", n, err)
	}
	for i := range 5 {
		m[(2*i)*page] = 1
	}
	if n, err = Resident(m); err != nil || n != 5*page {
		t.Errorf("after touching 5 pages: got %d resident bytes (%v), want %d", n, err, 5*page)
	}
	if err := DontNeed(m); err != nil {
		t.Fatal(err)
	}
	if n, err = Resident(m); err != nil || n != 0 {
		t.Errorf("after giving the pages back: got %d resident bytes (%v), want 0", n, err)
	}
	if m[0] != 0 {
		t.Errorf("after giving the pages back: got byte %d, want 0", m[0])
	}
}

func TestAdviseHuge(t *testing.T) {
	m := mustMap(t, 4<<20)
	// A kernel built without transparent huge pages answers EINVAL: the call
	// must say so and leave the bytes as they were.
	if err := AdviseHuge(m); err != nil {
		t.Logf("no huge pages here: %v", err)
	}
	m[0], m[len(m)-1] = 3, 4
	if m[0] != 3 || m[len(m)-1] != 4 {
		t.Error("bytes changed under the advice")
	}
}

func TestUnmapOfAPartIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("the system itself checks nothing here")
	}
	m := mustMap(t, 2*PageSize())
	if err := Unmap(m[:PageSize():PageSize()]); err == nil {
		t.Error("unmap of half a mapping: got no error")
	}
}
