package weights

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// flipped is a panel with every bit of a part of a weight flipped, behind a
// byte that says so.
func flipped(v *ir.Value, offset, size int64) *Panel {
	flip := func(dst, src []byte) {
		for i := range src {
			dst[i] = ^src[i]
		}
	}
	return &Panel{Weight: v, Offset: offset, Size: size, Form: "flipped", Bytes: 1 + int(size),
		Pack:   func(dst, src []byte) { dst[0]++; flip(dst[1:], src) },
		Unpack: func(dst, src []byte) { flip(dst, src[1:]) },
	}
}

// wantPanel compares a panel with what flipped makes of the part of the weight.
func wantPanel(t *testing.T, s *Store, p *Panel, weight []byte) {
	t.Helper()
	got, part := s.Panel(p), weight[p.Offset:p.Offset+p.Size]
	if len(got) != p.Bytes || got[0] != 1 {
		t.Fatalf("got a panel of %d bytes, packed more than once or never, want one of %d", len(got), p.Bytes)
	}
	for i := range part {
		if got[1+i] != ^part[i] {
			t.Fatalf("byte %d of the panel: got %d, want %d", i, got[1+i], ^part[i])
		}
	}
}

// TestPack packs a weight from its file at every distance from an aligned
// address: then only the panel is in memory, and the weight is loaded again
// when it is read.
func TestPack(t *testing.T) {
	memorytest.Check(t)
	for pad := range 4 {
		s, v, want := storeOfFile(t, pad, Options{})
		before := memory.Stats().Of(memory.Weights).Current
		p := flipped(v, 0, lazyBytes)
		use := Use{Weight: v, Panels: []*Panel{p}}
		file, _ := s.bufferOf(s.entries["w"].source())
		if got, want := s.Unloads(use), pad%4 != 0 || file.IsTrimmable(); got != want {
			t.Errorf("offset %d: got %v for whether packing unloads it, want %v", pad, got, want)
		}
		if s.Panel(p) != nil {
			t.Errorf("offset %d: got a panel before it is packed", pad)
		}
		for range 2 { // the second time there is nothing to do
			if err := s.Pack(t.Context(), []Use{use}, s, ""); err != nil {
				t.Fatal(err)
			}
			if now := memory.Stats().Of(memory.Weights).Current; now != before+int64(p.Bytes) {
				t.Errorf("offset %d: got %d bytes more, want the panel's %d", pad, now-before, p.Bytes)
			}
			if private, shared := s.InMemory(); private != int64(p.Bytes) || shared != 0 {
				t.Errorf("offset %d: got %d private and %d shared bytes, want the panel's %d", pad, private, shared, p.Bytes)
			}
			wantPanel(t, s, p, want)
		}
		if data, ok := s.Bytes(v); !ok || !bytes.Equal(data, want) {
			t.Errorf("offset %d: got other bytes of the weight", pad)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// source returns where the bytes of an entry are, loaded or not.
func (e *entry) source() []byte {
	if e.loaded {
		return e.data
	}
	return e.origin.inFile
}

// TestPackRestores unloads a weight that is in no file where its panel has all
// of it, and unpacks the panel when the weight is read. Parts of a weight are
// packed one by one, and a part that is read unpacked stays.
func TestPackRestores(t *testing.T) {
	memorytest.Check(t)
	whole, parts, plain := weightOf("whole", 4), weightOf("parts", 4), weightOf("plain", 4)
	const text = "0123456789abcdef"
	s := storeOf(t, map[*ir.Value]string{whole: text, parts: text, plain: text})
	defer s.Close()
	all, low, high := flipped(whole, 0, 16), flipped(parts, 0, 4), flipped(parts, 4, 12)
	uses := []Use{{plain, nil}, {whole, []*Panel{all}}, {parts, []*Panel{low, high}}}
	for i, want := range []bool{false, true, false} {
		if got := s.Unloads(uses[i]); got != want {
			t.Errorf("%s: got %v for whether packing unloads it, want %v", uses[i].Weight.Name, got, want)
		}
	}
	if err := s.Pack(t.Context(), uses, s, ""); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Panel{all, low, high} {
		wantPanel(t, s, p, []byte(text))
	}
	if got := s.Figures(); got != (Figures{Derived: 32}) {
		t.Errorf("got %+v, want two weights loaded", got)
	}
	if private, _ := s.InMemory(); private != 32+17+5+13 {
		t.Errorf("got %d bytes in memory, want two weights and three panels", private)
	}
	data, _ := s.Bytes(plain)
	if b, _ := s.bufferOf(data); !s.pinned[b] || s.canUnload(plain, true) {
		t.Error("the weight that is read unpacked is not pinned")
	}
	for _, v := range []*ir.Value{whole, parts, plain} {
		if got, ok := s.Bytes(v); !ok || string(got) != text {
			t.Errorf("%s: got %q, %v, want %q", v.Name, got, ok, text)
		}
	}
	if got := s.Figures(); got != (Figures{Derived: 48}) {
		t.Errorf("got %+v, want three weights loaded", got)
	}
}

// TestMeasure measures the panels of a form once, and loads nothing for
// it.
func TestMeasure(t *testing.T) {
	memorytest.Check(t)
	s, v, want := storeOfFile(t, 1, Options{})
	defer s.Close()
	measured := 0
	for range 2 {
		p := flipped(v, 4, 400)
		bytes := p.Bytes
		p.Bytes, p.Measure = 0, func(src []byte) int {
			measured++
			return 1 + len(src)
		}
		if err := s.Measure(p); err != nil || p.Bytes != bytes || measured != 1 {
			t.Errorf("got %d bytes, %v, measured %d times, want %d, measured once", p.Bytes, err, measured, bytes)
		}
		if private, _ := s.InMemory(); private != 0 {
			t.Errorf("got %d bytes in memory, want none", private)
		}
		if p.Measure = nil; s.Measure(p) != nil || p.Bytes != bytes {
			t.Errorf("a panel of known size: got %d bytes", p.Bytes)
		}
	}
	p := flipped(v, 4, 400)
	if err := s.Pack(t.Context(), []Use{{v, []*Panel{p}}}, s, ""); err != nil {
		t.Fatal(err)
	}
	wantPanel(t, s, p, want)
}

// TestPackFails leaves the weight readable and takes no memory; it works when
// what failed works again.
func TestPackFails(t *testing.T) {
	memorytest.Check(t)
	nowhere := errors.New("nowhere to meet")
	fault := nowhere
	share := func(_ context.Context, _ [32]byte, size int, fill func([]byte) error) (*memory.Buffer, error) {
		if fault != nil {
			return nil, fault
		}
		b, err := memory.Alloc(size, memory.Shared)
		if err == nil {
			err = fill(b.Bytes())
		}
		return b, err
	}
	for _, o := range []Options{{}, {Share: share}} {
		for pad := range 2 {
			s, v, want := storeOfFile(t, pad, o)
			p := flipped(v, 0, lazyBytes)
			uses := []Use{{v, []*Panel{p}}}
			limit := memory.SetLimit(memory.Stats().Total.Current + lazyBytes/2)
			err := s.Pack(t.Context(), uses, s, "")
			memory.SetLimit(limit)
			if cause := map[bool]error{true: tensor.ErrLimit, false: nowhere}[o.Share == nil]; !errors.Is(err, cause) {
				t.Errorf("offset %d: got %v, want %v", pad, err, cause)
			}
			if private, shared := s.InMemory(); private != 0 || shared != 0 || s.Panel(p) != nil {
				t.Errorf("offset %d: got %d private and %d shared bytes, want none, and no panel", pad, private, shared)
			}
			if data, ok := s.Bytes(v); !ok || !bytes.Equal(data, want) {
				t.Errorf("offset %d: got other bytes of the weight", pad)
			}
			fault = nil
			if err := s.Pack(t.Context(), uses, s, ""); err != nil {
				t.Error(err)
			}
			fault = nowhere
			wantPanel(t, s, p, want)
			private, shared := s.InMemory()
			if size := int64(p.Bytes); o.Share == nil && private != size || o.Share != nil && (private != 0 || shared < size || shared >= size+memory.Alignment) {
				t.Errorf("offset %d: got %d private and %d shared bytes, want the panel's %d", pad, private, shared, size)
			}
			none := weightOf("none", 4)
			if err := s.Pack(t.Context(), []Use{{none, []*Panel{flipped(none, 0, 16)}}}, s, ""); err == nil {
				t.Error("a weight that is not there: got no error")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestProgress counts the bytes of a file that is read and of panels that are
// packed: each stage from 0 to its total, panels that several uses have once,
// and nothing where all are packed.
func TestProgress(t *testing.T) {
	memorytest.Check(t)
	type call struct {
		stage       string
		done, total int64
	}
	var calls []call
	s, v, _ := storeOfFile(t, 0, Options{Read: true, Progress: func(stage string, done, total int64) { calls = append(calls, call{stage, done, total}) }})
	size := calls[0].total
	if want := []call{{ReadingFile, 0, size}, {ReadingFile, size, size}}; size < lazyBytes || !slices.Equal(calls, want) {
		t.Errorf("reading: got %v, want %v", calls, want)
	}
	calls = nil
	half := int64(lazyBytes / 2)
	low, high := flipped(v, 0, half), flipped(v, half, half)
	uses := []Use{{Weight: v, Panels: []*Panel{low, high}}, {Weight: v, Panels: []*Panel{high}}}
	for range 2 { // the second time there is nothing to do
		if err := s.Pack(t.Context(), uses, s, ""); err != nil {
			t.Fatal(err)
		}
	}
	if want := []call{{PackingWeights, 0, 2 + 2*half}, {PackingWeights, 1 + half, 2 + 2*half}, {PackingWeights, 2 + 2*half, 2 + 2*half}}; !slices.Equal(calls, want) {
		t.Errorf("packing: got %v, want %v", calls, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestProgressOfFault ends the stage although a panel could not be packed.
func TestProgressOfFault(t *testing.T) {
	memorytest.Check(t)
	var done, total int64
	s, v, _ := storeOfFile(t, 0, Options{Progress: func(_ string, d, n int64) { done, total = d, n }})
	p := flipped(v, 1<<40, 16) // beyond the weight
	if err := s.Pack(t.Context(), []Use{{Weight: v, Panels: []*Panel{p}}}, s, ""); !errors.Is(err, tensor.ErrLimit) {
		t.Fatalf("got %v, want ErrLimit", err)
	}
	if done != 17 || total != 17 {
		t.Errorf("got %d of %d, want 17 of 17", done, total)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
