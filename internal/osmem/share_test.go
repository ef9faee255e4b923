package osmem

import (
	"errors"
	"math"
	"os"
	"runtime"
	"testing"
)

func TestSharedIsUnsupportedElsewhere(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("this system has it")
	}
	if _, err := NewShared("x", 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("shared memory: got %v, want an error that matches errors.ErrUnsupported", err)
	}
	if _, err := MapShared(0, 1); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("map shared memory: got %v, want an error that matches errors.ErrUnsupported", err)
	}
}

func TestSharedSizes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory exists on Linux only")
	}
	page := PageSize()
	for _, c := range []struct{ size, want int }{
		{1, page}, {page, page}, {page + 1, 2 * page}, {2<<20 - 1, 2 << 20}, {2 << 20, 2 << 20}, {2<<20 + 1, 4 << 20}, {5 << 20, 6 << 20},
	} {
		exact, err := NewSharedPages("sizes", c.size)
		if err != nil {
			t.Fatalf("pages of %d bytes: %v", c.size, err)
		}
		if got, want := len(exact.Bytes()), (c.size+page-1)/page*page; got != want {
			t.Errorf("pages of %d bytes: got %d, want %d", c.size, got, want)
		}
		view, err := MapShared(exact.Fd(), len(exact.Bytes()))
		if err := errors.Join(err, Unmap(view), exact.Close()); err != nil {
			t.Errorf("pages of %d bytes: %v", c.size, err)
		}
		s, err := NewShared("sizes", c.size)
		if err != nil {
			t.Fatalf("shared memory of %d bytes: %v", c.size, err)
		}
		if len(s.Bytes()) != c.want || cap(s.Bytes()) != c.want {
			t.Errorf("shared memory of %d bytes: got %d (capacity %d), want %d", c.size, len(s.Bytes()), cap(s.Bytes()), c.want)
		}
		for i, b := range s.Bytes() {
			if b != 0 {
				t.Fatalf("shared memory of %d bytes: got %d at %d, want zeros", c.size, b, i)
			}
		}
		s.Bytes()[0], s.Bytes()[c.want-1] = 1, 2
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if s.Bytes() != nil || s.Fd() != -1 {
			t.Errorf("closed: got %d bytes, descriptor %d, want none and -1", len(s.Bytes()), s.Fd())
		}
		if err := s.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("closed twice: got %v, want os.ErrClosed", err)
		}
		if err := s.Finish(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("finish after close: got %v, want os.ErrClosed", err)
		}
	}
	for _, size := range []int{0, -1, math.MinInt, math.MaxInt, math.MaxInt - 1<<20} {
		for _, make := range []func(string, int) (*Shared, error){NewShared, NewSharedPages} {
			if _, err := make("sizes", size); err == nil || errors.Is(err, ErrNoMemory) {
				t.Errorf("shared memory of %d bytes: got %v, want an error about the size", size, err)
			}
		}
	}
	if _, err := NewShared("sizes", 1<<46); !errors.Is(err, ErrNoMemory) {
		t.Errorf("shared memory of 64 TiB: got %v, want ErrNoMemory", err)
	}
}
