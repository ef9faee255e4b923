package weights

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

func rawOf(t *testing.T, s *Store, v *ir.Value) []byte {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := s.raw(v.Name, s.entries[v.Name])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUnloadFile copies a large weight that lies unaligned only when its bytes
// are read, unloads it, and loads it again.
func TestUnloadFile(t *testing.T) {
	memorytest.Check(t)
	seen := map[bool]bool{}
	for pad := range 4 {
		s, v, want := storeOfFile(t, pad, Options{})
		before := memory.Stats().Of(memory.Weights).Current
		raw := rawOf(t, s, v)
		if !bytes.Equal(raw, want) || !s.Has(v) {
			t.Errorf("offset %d: the weight's bytes in the file differ", pad)
		}
		if got := s.Figures(); got != (Figures{Mapped: lazyBytes}) || memory.Stats().Of(memory.Weights).Current != before {
			t.Errorf("offset %d: got %+v before the weight was read, want nothing copied", pad, got)
		}
		for range 2 {
			data, ok := s.Bytes(v)
			if !ok || !bytes.Equal(data, want) || !isAligned(data, dtype.F32) {
				t.Fatalf("offset %d: the weight's bytes differ", pad)
			}
			copied := memory.Stats().Of(memory.Weights).Current - before
			if figures := s.Figures(); figures.Copied != copied || figures.Mapped+figures.Copied != lazyBytes {
				t.Errorf("offset %d: got %+v, and %d bytes taken", pad, figures, copied)
			}
			seen[copied > 0] = true
			file, _ := s.bufferOf(raw)
			if want := copied > 0 || file.IsTrimmable(); s.canUnload(v, false) != want {
				t.Errorf("offset %d: got %t for whether the weight can be unloaded, want %t", pad, !want, want)
			}
			if err := s.unload(v, nil); err != nil {
				t.Error(err)
			}
			if now := memory.Stats().Of(memory.Weights).Current; now != before {
				t.Errorf("offset %d: got %d bytes taken after the weight was unloaded, want none", pad, now-before)
			}
		}
		if err := s.Prune(programOf(v)); err != nil {
			t.Fatal(err)
		}
		if data, ok := s.Bytes(v); !ok || !bytes.Equal(data, want) {
			t.Errorf("offset %d: the weight's bytes differ after Prune", pad)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("got copied or not: %v, want weights of both kinds", seen)
	}
}

// TestSmallInFile adds weights that are copied out of their file, though they
// are aligned there, and unloads one.
func TestSmallInFile(t *testing.T) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "weights.bin")
	want := floatBytes(inPlaceBytes / 2)
	if err := os.WriteFile(path, want, 0o666); err != nil {
		t.Fatal(err)
	}
	s := New(Options{})
	defer s.Close()
	file, err := s.MapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	small, large := weightOf("small", inPlaceBytes/4-1), weightOf("large", inPlaceBytes/4)
	for w, data := range map[*ir.Value][]byte{small: file[:inPlaceBytes-4], large: file[inPlaceBytes:][:inPlaceBytes]} {
		if err := s.AddInFile(w.Name, w.Type, data); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := s.Figures(), (Figures{Mapped: inPlaceBytes, Copied: inPlaceBytes - 4}); got != want {
		t.Errorf("got %+v, want %+v: a small weight lies in its file", got, want)
	}
	if err := s.unload(small, nil); err != nil {
		t.Fatal(err)
	}
	if private, _ := s.InMemory(); private != 0 {
		t.Errorf("unloaded: got %d bytes in memory, want none", private)
	}
	if data, ok := s.Bytes(small); !ok || !bytes.Equal(data, want[:inPlaceBytes-4]) {
		t.Error("loaded again: got other bytes than those of the file")
	}
}

// TestUnloadFileInMemory unloads nothing of a file that was read whole, and of
// bytes that the caller has: they stay.
func TestUnloadFileInMemory(t *testing.T) {
	memorytest.Check(t)
	for pad := range 4 {
		read, v, want := storeOfFile(t, pad, Options{Read: true})
		given := New(Options{})
		if err := given.AddInFile(v.Name, v.Type, append(make([]byte, 64+pad), want...)[64+pad:]); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Store{read, given} {
			if s.canUnload(v, false) {
				t.Errorf("offset %d: it can be unloaded, want its bytes to stay", pad)
			}
			if err := s.unload(v, nil); err != nil {
				t.Error(err)
			}
			if data, ok := s.Bytes(v); !ok || !bytes.Equal(data, want) {
				t.Errorf("offset %d: the weight's bytes differ", pad)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestUnloadDerived unloads a weight that is in no file only where it can be
// restored, is not pinned and shares its bytes with no other.
func TestUnloadDerived(t *testing.T) {
	memorytest.Check(t)
	values := map[string]*ir.Value{"free": weightOf("free", 2), "pinned": weightOf("pinned", 2), "shared": weightOf("shared", 2)}
	s := storeOf(t, map[*ir.Value]string{values["free"]: "12345678", values["pinned"]: "12345678", values["shared"]: "12345678"})
	defer s.Close()
	pinned, _ := s.Bytes(values["pinned"])
	s.pin(pinned)
	mustView(t, s, weightOf("part", 1), values["shared"], 4)
	restored := 0
	restore := func(dst []byte) {
		restored++
		copy(dst, "abcdefgh")
	}
	for name, v := range values {
		if s.canUnload(v, false) {
			t.Errorf("%s: it can be unloaded although nothing can restore it", name)
		}
		if got, want := s.canUnload(v, true), name == "free"; got != want {
			t.Errorf("%s: got %v for whether it can be unloaded, want %v", name, got, want)
		}
		if err := s.unload(v, restore); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Figures(); got != (Figures{Derived: 16}) || restored != 0 {
		t.Errorf("got %+v and %d restored, want two weights left", got, restored)
	}
	for name, v := range values {
		want := "12345678"
		if name == "free" {
			want = "abcdefgh"
		}
		if data, ok := s.Bytes(v); !ok || string(data) != want {
			t.Errorf("%s: got %q, want %q", name, data, want)
		}
	}
	if got := s.Figures(); got != (Figures{Derived: 24}) || restored != 1 {
		t.Errorf("got %+v and %d restored, want all weights again", got, restored)
	}
}

// TestDeriveLazily derives a weight from one in the file when its bytes are
// read, as often as it was unloaded, also when the other's name is gone.
func TestDeriveLazily(t *testing.T) {
	memorytest.Check(t)
	for pad := range 4 {
		s, of, plain := storeOfFile(t, pad, Options{})
		want := make([]byte, lazyBytes)
		for i, b := range plain {
			want[i] = ^b
		}
		v := weightOf("made", lazyBytes/4)
		made := 0
		err := s.Derive(v, of, 0, func(dst, src []byte) {
			made++
			for i, b := range src {
				dst[i] = ^b
			}
		})
		if err != nil || !s.Has(v) || !s.canUnload(v, false) || made != 0 {
			t.Fatalf("offset %d: got %v, made %d times, want it not loaded", pad, err, made)
		}
		if err := s.Prune(programOf(v)); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			data, ok := []byte(nil), true
			if round == 1 {
				data, ok = s.Bytes(v)
			} else {
				data = rawOf(t, s, v)
			}
			if !ok || !bytes.Equal(data, want) || !isAligned(data, dtype.F32) || made != 1+round {
				t.Fatalf("offset %d: got other bytes, made %d times", pad, made)
			}
			if private, _ := s.InMemory(); private != lazyBytes || s.Figures() != (Figures{Derived: lazyBytes}) {
				t.Errorf("offset %d: got %d bytes and %+v, want one weight derived", pad, private, s.Figures())
			}
			if err := s.unload(v, nil); err != nil {
				t.Fatal(err)
			}
			if private, _ := s.InMemory(); private != 0 || s.Figures() != (Figures{}) {
				t.Errorf("offset %d: got %d bytes and %+v, want none", pad, private, s.Figures())
			}
			if err := s.Prune(programOf(v)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeriveNow derives at once the constants that would keep the other
// weight's bytes in memory, and small ones; bytes of the caller are there
// anyway.
func TestDeriveNow(t *testing.T) {
	memorytest.Check(t)
	const n = lazyBytes / 4
	s := New(Options{})
	defer s.Close()
	own, given, small := weightOf("own", n), weightOf("given", n), weightOf("small", n-1)
	for _, err := range []error{
		s.Add("own", own.Type, floatBytes(n)),
		s.AddInFile("given", given.Type, floatBytes(n)),
		s.AddInFile("small", small.Type, floatBytes(n-1)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		v, of *ir.Value
		now   bool
	}{
		"from a weight in memory":  {weightOf("a", n), own, true},
		"small":                    {weightOf("b", n-1), small, true},
		"from bytes of the caller": {weightOf("c", n), given, false},
		"under the name once more": {weightOf("own", n), given, false},
	} {
		filled := 0
		err := s.Derive(c.v, c.of, 0, func(dst, src []byte) {
			filled++
			copy(dst, src)
		})
		if (err == nil) != (c.v.Name != "own") || (filled == 1) != c.now {
			t.Errorf("%s: got %v, filled %d times, want now %v", what, err, filled, c.now)
		}
	}
}
