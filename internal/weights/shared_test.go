package weights

import (
	"bytes"
	"context"
	"crypto/sha256"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestMove replaces the memory of a weight by a copy elsewhere, and moves the
// other weights in the same buffer, too.
func TestMove(t *testing.T) {
	memorytest.Check(t)
	v, part, other := weightOf("v", 4), weightOf("part", 2), weightOf("other", 4)
	s := storeOf(t, map[*ir.Value]string{v: "0123456789abcdef", other: "0123456789abcdef"})
	defer s.Close()
	mustView(t, s, part, v, 4)
	pinned, _ := s.Bytes(other)
	s.pin(pinned)
	if data, err := s.private("other"); err != nil || data != nil {
		t.Errorf("a weight that is pinned: got %q, %v, want that it stays", data, err)
	}
	private, err := s.private("part")
	if err != nil || string(private) != "0123456789abcdef" {
		t.Fatalf("got %q, %v, want the whole buffer", private, err)
	}
	to := bytes.Clone(private)
	if err := s.move("part", to); err != nil {
		t.Fatal(err)
	}
	for x, want := range map[*ir.Value]string{v: "0123456789abcdef", part: "456789ab"} {
		got, ok := s.Bytes(x)
		if !ok || string(got) != want || addressOf(got) < addressOf(to) || addressOf(got) >= addressOf(to)+16 || cap(got) != len(got) {
			t.Errorf("%s: got %q at another place, want %q in the copy", x.Name, got, want)
		}
		if data, err := s.private(x.Name); err != nil || data != nil {
			t.Errorf("%s: got %q, %v, want nothing private", x.Name, data, err)
		}
		if s.canUnload(x, true) {
			t.Errorf("%s: it can be unloaded, want it to stay", x.Name)
		}
	}
	if got := s.Figures(); got != (Figures{Derived: 16, Shared: 16}) {
		t.Errorf("got %+v, want one weight derived and one shared", got)
	}
	if private, shared := s.InMemory(); private != 16 || shared != 0 {
		t.Errorf("got %d private and %d shared bytes, want the one that is pinned", private, shared)
	}
	if err := s.move("v", to); err == nil {
		t.Error("moved twice: got no error")
	}
}

// TestMoveUnaligned moves a weight out of its file, in which it is read at
// any address, mapped or not.
func TestMoveUnaligned(t *testing.T) {
	memorytest.Check(t)
	for pad := range 4 {
		for _, read := range []bool{false, true} {
			s, v, want := storeOfFile(t, pad, Options{Read: read})
			private, err := s.private(v.Name)
			if err != nil {
				t.Fatal(err)
			}
			if private == nil { // read where it lies in the mapped file
				if data, _ := s.Bytes(v); read || !isAligned(data, dtype.F32) {
					t.Errorf("offset %d, read %v: got nothing private", pad, read)
				}
			} else if err := s.move(v.Name, bytes.Clone(private)); err != nil {
				t.Fatal(err)
			}
			got, ok := s.Bytes(v)
			if !ok || !bytes.Equal(got, want) || private != nil && s.Figures().Shared != lazyBytes {
				t.Errorf("offset %d, read %v: got other bytes or figures %+v", pad, read, s.Figures())
			}
			if now, _ := s.InMemory(); !read && now != 0 {
				t.Errorf("offset %d: got %d private bytes, want none", pad, now)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestReadIntoShared reads a file into memory that processes have in common.
func TestReadIntoShared(t *testing.T) {
	memorytest.Check(t)
	copies := 0
	s, _, want := storeOfFile(t, 0, Options{Read: true, Share: func(_ context.Context, _ [sha256.Size]byte, size int, fill func([]byte) error) (*memory.Buffer, error) {
		copies++
		b, err := memory.Alloc(size, memory.Shared)
		if err == nil {
			err = fill(b.Bytes())
		}
		return b, err
	}})
	defer s.Close()
	private, shared := s.InMemory()
	if copies != 1 || shared != int64(64+len(want)) {
		t.Errorf("got %d copies, %d private and %d shared bytes, want the file in shared ones", copies, private, shared)
	}
}
