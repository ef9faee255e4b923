package weights

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// floatBytes returns the bytes of n floats.
func floatBytes(n int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	return b
}

func weightOf(name string, elements int) *ir.Value {
	return &ir.Value{Kind: ir.Weight, Name: name, Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(elements)}}
}

func programOf(weights ...*ir.Value) *ir.Program { return &ir.Program{Weights: weights} }

// storeOfFile returns a store with the weight w of lazyBytes, which lies in a
// file pad bytes off an aligned address.
func storeOfFile(t *testing.T, pad int, o Options) (s *Store, w *ir.Value, want []byte) {
	t.Helper()
	w, want = weightOf("w", lazyBytes/4), floatBytes(lazyBytes/4)
	path := filepath.Join(t.TempDir(), "weights.bin")
	if err := os.WriteFile(path, append(make([]byte, 64+pad), want...), 0o666); err != nil {
		t.Fatal(err)
	}
	s = New(o)
	file, err := s.MapFile(path)
	if err == nil {
		err = s.AddInFile(w.Name, w.Type, file[64+pad:])
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, w, want
}

// storeOf returns a store of weights with the given bytes.
func storeOf(t *testing.T, weights map[*ir.Value]string) *Store {
	t.Helper()
	s := New(Options{})
	for v, data := range weights {
		if err := s.Add(v.Name, v.Type, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func mustView(t *testing.T, s *Store, v, of *ir.Value, offset int) {
	t.Helper()
	if err := s.Derive(v, of, offset, nil); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	memorytest.Check(t)
	s := New(Options{})
	typ := op.Type{DType: dtype.F32, Shape: shape.MustOf(2)}
	a, b, half := weightOf("a", 2), weightOf("b", 2), weightOf("c", 1)
	if err := s.Add("a", typ, []byte{1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		t.Fatal(err)
	}
	err := s.Derive(b, nil, 0, func(dst, src []byte) {
		if src != nil || !bytes.Equal(dst, make([]byte, 8)) {
			t.Errorf("got %v to fill from %v, want zeros from nothing", dst, src)
		}
		copy(dst, "12345678")
	})
	if err != nil {
		t.Fatal(err)
	}
	mustView(t, s, half, b, 4)
	err = s.Derive(weightOf("d", 2), a, 0, func(dst, src []byte) {
		for i := range dst {
			dst[i] = src[i] + 'a'
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.AddConverted("e", typ, func(dst []byte) error {
		copy(dst, "converte")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "\x01\x02\x03\x04\x05\x06\x07\x08", "b": "12345678", "c": "5678", "d": "bcdefghi", "e": "converte"} {
		if got, ok := s.Bytes(&ir.Value{Name: name}); !ok || string(got) != want || !s.Has(&ir.Value{Name: name}) {
			t.Errorf("weight %s: got %q, %v, want %q", name, got, ok, want)
		}
	}
	if got, want := s.Figures(), (Figures{Derived: 24, Copied: 8}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, ok := s.Bytes(weightOf("none", 2)); ok || got != nil || s.Has(weightOf("none", 2)) {
		t.Errorf("a weight that is not there: got %v, %v", got, ok)
	}
	symbolic, err := shape.FromDims(shape.Sym("n"))
	if err != nil {
		t.Fatal(err)
	}
	open := op.Type{DType: dtype.F32, Shape: symbolic}
	for what, err := range map[string]error{
		"taken name":      s.Add("a", typ, make([]byte, 8)),
		"view's name":     s.Derive(a, b, 0, nil),
		"length":          s.Add("f", typ, make([]byte, 7)),
		"length in file":  s.AddInFile("f", typ, make([]byte, 9)),
		"view's length":   s.Derive(weightOf("f", 2), b, 1, nil),
		"view's offset":   s.Derive(weightOf("f", 1), b, -1, nil),
		"offset":          s.Derive(weightOf("f", 1), b, 9, func(_, _ []byte) { t.Error("filled") }),
		"of nothing":      s.Derive(weightOf("f", 1), weightOf("none", 1), 0, nil),
		"no size":         s.Add("f", open, nil),
		"derived size":    s.Derive(&ir.Value{Name: "f", Type: open}, nil, 0, nil),
		"converted size":  s.AddConverted("f", open, nil),
		"failed to fill":  s.AddConverted("g", typ, func([]byte) error { return errors.New("weight of no numbers") }),
		"converted twice": s.AddConverted("a", typ, func([]byte) error { t.Error("filled"); return nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), "weight") {
			t.Errorf("%s: got %v, want an error", what, err)
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for what, err := range map[string]error{"Add": s.Add("e", typ, make([]byte, 8)), "Derive": s.Derive(half, b, 0, nil)} {
		if !errors.Is(err, tensor.ErrReleased) {
			t.Errorf("%s after Close: got %v, want ErrReleased", what, err)
		}
	}
}

// TestNoMemory enters nothing and loads nothing where there is no memory, and
// does both when there is some again.
func TestNoMemory(t *testing.T) {
	memorytest.Check(t)
	s, w, want := storeOfFile(t, 1, Options{})
	defer s.Close()
	made := weightOf("made", lazyBytes/4)
	derive := func() error { return s.Derive(made, nil, 0, func(dst, _ []byte) { copy(dst, want) }) }
	limit := memory.SetLimit(memory.Stats().Total.Current + lazyBytes/2)
	data, ok := s.Bytes(w)
	err := derive()
	memory.SetLimit(limit)
	if ok || data != nil || !s.Has(w) {
		t.Errorf("got %d bytes, %v, want none of a weight that is there", len(data), ok)
	}
	if !errors.Is(err, tensor.ErrLimit) || s.Has(made) {
		t.Errorf("got %v, want ErrLimit and nothing entered", err)
	}
	if err := derive(); err != nil {
		t.Error(err)
	}
	for _, v := range []*ir.Value{w, made} {
		if data, ok := s.Bytes(v); !ok || !bytes.Equal(data, want) {
			t.Errorf("%s: got other bytes", v.Name)
		}
	}
}

// TestOverlay has constants of its own over a table that it does not change.
func TestOverlay(t *testing.T) {
	memorytest.Check(t)
	a := weightOf("a", 4)
	s := storeOf(t, map[*ir.Value]string{a: "0123456789abcdef"})
	defer s.Close()
	o := &Overlay{Base: s}
	part, deep, own, sum := weightOf("part", 3), weightOf("deep", 1), weightOf("own", 2), weightOf("sum", 1)
	ownView := weightOf("own view", 1)
	fill := func(dst, src []byte) {
		for i := range dst {
			dst[i] = src[i] + 1
		}
	}
	for what, err := range map[string]error{
		"a view":                 o.Derive(part, a, 4, nil),
		"of nothing":             o.Derive(own, nil, 0, func(dst, src []byte) { copy(dst, "ABCDEFGH") }),
		"a view of its own":      o.Derive(ownView, own, 4, nil),
		"derived from the base":  o.Derive(sum, a, 8, fill),
		"derived from a view":    o.Derive(weightOf("next", 1), part, 0, fill),
		"a name of the base too": o.Derive(weightOf("b", 1), a, 0, nil),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := o.Derive(deep, part, 4, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "0123456789abcdef", "part": "456789abcdef", "deep": "89ab", "own": "ABCDEFGH", "own view": "EFGH", "sum": "9:bc", "next": "5678", "b": "0123"} {
		if got, ok := o.Bytes(&ir.Value{Name: name}); !ok || string(got) != want || !o.Has(&ir.Value{Name: name}) {
			t.Errorf("%s: got %q, %v, want %q", name, got, ok, want)
		}
	}
	if s.Has(part) || s.Has(own) || o.Has(weightOf("none", 1)) {
		t.Error("got constants where there are none")
	}
	for what, err := range map[string]error{
		"view too long":   o.Derive(weightOf("x", 4), a, 4, nil),
		"negative offset": o.Derive(weightOf("x", 1), a, -4, nil),
		"of none":         o.Derive(weightOf("x", 1), weightOf("none", 1), 0, nil),
		"offset":          o.Derive(weightOf("x", 1), a, 17, fill),
		"filled of none":  o.Derive(weightOf("x", 1), weightOf("none", 1), 0, fill),
		"own too long":    o.Derive(weightOf("x", 2), own, 4, nil),
	} {
		if err == nil || o.Has(weightOf("x", 1)) {
			t.Errorf("%s: got %v, want an error and nothing entered", what, err)
		}
	}
	if got, ok := (&Overlay{}).Bytes(a); ok || (&Overlay{}).Has(a) {
		t.Errorf("without a base: got %q", got)
	}
	// The base moves its bytes: views are where they are now.
	private, err := s.private("a")
	if err != nil {
		t.Fatal(err)
	}
	to := bytes.Clone(private)
	if err := s.move("a", to); err != nil {
		t.Fatal(err)
	}
	if got, ok := o.Bytes(deep); !ok || string(got) != "89ab" || addressOf(got) != addressOf(to)+8 {
		t.Errorf("got %q elsewhere, want the bytes that were moved", got)
	}
}
