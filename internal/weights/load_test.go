package onnx

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestSpareOfFile copies a large weight that lies unaligned only when somebody
// asks for its bytes, gives it back, and reads it again.
func TestSpareOfFile(t *testing.T) {
	memorytest.Check(t)
	const n = copiedLate / 4
	want := floatsRaw(n)
	seen := map[bool]bool{}
	for pad := range 4 {
		m := parseModelText(t, "opset 13\ninput x f32[n]\ny = Add(x, w)\noutput y f32[n]")
		m.producer = strings.Repeat("p", 1+pad)
		m.graph.initializers = []tensorProto{{name: "w", dims: []int64{n}, dataType: 1, raw: want}}
		model, err := Load(writeModel(t, m), Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, v := model.Weights, model.Program.Weights[0]
		before := memory.Stats().Of(memory.Weights).Current
		raw, ok := w.Raw(v)
		if !ok || !bytes.Equal(raw, want) || !w.Has(v) {
			t.Errorf("offset %d: the weight's bytes in the file differ", pad)
		}
		if got := w.Figures(); got != (WeightFigures{Mapped: copiedLate}) || memory.Stats().Of(memory.Weights).Current != before {
			t.Errorf("offset %d: got %+v before anybody asked, want nothing copied", pad, got)
		}
		for range 2 {
			data, ok := w.Bytes(v)
			if !ok || !bytes.Equal(data, want) || !aligned(data, dtype.F32) {
				t.Fatalf("offset %d: the weight's bytes differ", pad)
			}
			copied := memory.Stats().Of(memory.Weights).Current - before
			if figures := w.Figures(); figures.Copied != copied || figures.Mapped+figures.Copied != copiedLate {
				t.Errorf("offset %d: got %+v, and %d bytes taken", pad, figures, copied)
			}
			seen[copied > 0] = true
			file, _ := w.bufferOf(raw)
			if want := copied > 0 || file.IsTrimmable(); w.Sparable(v, false) != want {
				t.Errorf("offset %d: got %t for whether the weight is sparable, want %t", pad, !want, want)
			}
			if err := w.Spare(v, nil); err != nil {
				t.Error(err)
			}
			if now := memory.Stats().Of(memory.Weights).Current; now != before {
				t.Errorf("offset %d: got %d bytes taken after the weight was given back, want none", pad, now-before)
			}
		}
		if err := w.Keep(model.Program); err != nil {
			t.Fatal(err)
		}
		if data, ok := w.Bytes(v); !ok || !bytes.Equal(data, want) {
			t.Errorf("offset %d: the weight's bytes differ after Keep", pad)
		}
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("got copied or not: %v, want weights of both kinds", seen)
	}
}

// TestSpareOfFileInMemory spares nothing of a file that was read whole, and of
// one that the caller has: its bytes stay.
func TestSpareOfFileInMemory(t *testing.T) {
	memorytest.Check(t)
	const n = copiedLate / 4
	for pad := range 4 {
		m := parseModelText(t, "opset 13\ninput x f32[n]\ny = Add(x, w)\noutput y f32[n]")
		m.producer = strings.Repeat("p", 1+pad)
		m.graph.initializers = []tensorProto{{name: "w", dims: []int64{n}, dataType: 1, raw: floatsRaw(n)}}
		path := writeModel(t, m)
		read, err := Load(path, Options{Read: true})
		if err != nil {
			t.Fatal(err)
		}
		given, err := Parse(encodeModel(m), "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []*Model{read, given} {
			v := model.Program.Weights[0]
			if model.Weights.Sparable(v, false) {
				t.Errorf("offset %d: sparable, want its bytes to stay", pad)
			}
			if err := model.Weights.Spare(v, nil); err != nil {
				t.Error(err)
			}
			if data, ok := model.Weights.Bytes(v); !ok || !bytes.Equal(data, floatsRaw(n)) {
				t.Errorf("offset %d: the weight's bytes differ", pad)
			}
			if err := model.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestSpareOfMade gives back a weight that is in no file only where something
// can make it again, and nobody holds it or shares its bytes.
func TestSpareOfMade(t *testing.T) {
	memorytest.Check(t)
	w := newWeights()
	defer w.Close()
	typ := op.Type{DType: dtype.F32, Shape: shape.MustOf(2)}
	values := map[string]*ir.Value{}
	for _, name := range []string{"free", "held", "shared"} {
		values[name] = &ir.Value{Kind: ir.Weight, Name: name, Type: typ}
		if err := w.Add(name, typ, []byte("12345678")); err != nil {
			t.Fatal(err)
		}
	}
	held, _ := w.Bytes(values["held"])
	w.Hold(held)
	shared, _ := w.Bytes(values["shared"])
	if err := w.Share("part", op.Type{DType: dtype.F32, Shape: shape.MustOf(1)}, shared[4:]); err != nil {
		t.Fatal(err)
	}
	restored := 0
	restore := func(dst []byte) {
		restored++
		copy(dst, "abcdefgh")
	}
	for name, v := range values {
		if w.Sparable(v, false) {
			t.Errorf("%s: sparable although nothing can make it again", name)
		}
		if got, want := w.Sparable(v, true), name == "free"; got != want {
			t.Errorf("%s: got sparable %v, want %v", name, got, want)
		}
		if err := w.Spare(v, restore); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Figures(); got != (WeightFigures{Made: 16}) || restored != 0 {
		t.Errorf("got %+v and %d restored, want two weights left", got, restored)
	}
	for name, v := range values {
		want := "12345678"
		if name == "free" {
			want = "abcdefgh"
		}
		if data, ok := w.Bytes(v); !ok || string(data) != want {
			t.Errorf("%s: got %q, want %q", name, data, want)
		}
	}
	if got := w.Figures(); got != (WeightFigures{Made: 24}) || restored != 1 {
		t.Errorf("got %+v and %d restored, want all weights again", got, restored)
	}
}

// TestPostpone makes a weight of one in the file when somebody asks for its
// bytes, as often as it was given back, also when the other's name is gone.
func TestPostpone(t *testing.T) {
	memorytest.Check(t)
	const n = copiedLate / 4
	want := make([]byte, copiedLate)
	for i, b := range floatsRaw(n) {
		want[i] = ^b
	}
	for pad := range 4 {
		m := parseModelText(t, "opset 13\ninput x f32[n]\ny = Add(x, w)\noutput y f32[n]")
		m.producer = strings.Repeat("p", 1+pad)
		m.graph.initializers = []tensorProto{{name: "w", dims: []int64{n}, dataType: 1, raw: floatsRaw(n)}}
		model, err := Load(writeModel(t, m), Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, v := model.Weights, weightOf("made", n)
		from, _ := w.Raw(model.Program.Weights[0])
		made := 0
		later, err := w.Postpone(v.Name, v.Type, from, func(dst []byte) {
			made++
			for i, b := range from {
				dst[i] = ^b
			}
		})
		if err != nil || !later || !w.Has(v) || !w.Sparable(v, false) || made != 0 {
			t.Fatalf("offset %d: got %v, %v, made %d times, want it postponed", pad, later, err, made)
		}
		model.Program.Weights = []*ir.Value{v}
		if err := w.Keep(model.Program); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			data, ok := w.Raw(v)
			if round == 1 {
				data, ok = w.Bytes(v)
			}
			if !ok || !bytes.Equal(data, want) || !aligned(data, dtype.F32) || made != 1+round {
				t.Fatalf("offset %d: got other bytes, made %d times", pad, made)
			}
			if private, _ := w.InMemory(); private != copiedLate || w.Figures() != (WeightFigures{Made: copiedLate}) {
				t.Errorf("offset %d: got %d bytes and %+v, want one weight made", pad, private, w.Figures())
			}
			if err := w.Spare(v, nil); err != nil {
				t.Fatal(err)
			}
			if private, _ := w.InMemory(); private != 0 || w.Figures() != (WeightFigures{}) {
				t.Errorf("offset %d: got %d bytes and %+v, want none", pad, private, w.Figures())
			}
			if err := w.Keep(model.Program); err != nil {
				t.Fatal(err)
			}
		}
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPostponeRefuses what would keep bytes in memory, and what is small.
func TestPostponeRefuses(t *testing.T) {
	memorytest.Check(t)
	const n = copiedLate / 4
	w := newWeights()
	defer w.Close()
	large, small := weightOf("large", n), weightOf("small", n-1)
	if err := w.Add("own", large.Type, floatsRaw(n)); err != nil {
		t.Fatal(err)
	}
	own, _ := w.Bytes(weightOf("own", n))
	for what, c := range map[string]struct {
		v    *ir.Value
		from []byte
	}{"of a weight in memory": {large, own}, "small": {small, floatsRaw(n - 1)}} {
		if later, err := w.Postpone(c.v.Name, c.v.Type, c.from, nil); later || err != nil || w.Has(c.v) {
			t.Errorf("%s: got %v, %v, want nothing entered", what, later, err)
		}
	}
	given := floatsRaw(n) // bytes that the caller keeps
	for i := range 2 {
		later, err := w.Postpone("large", large.Type, given, func(dst []byte) { copy(dst, given) })
		if later != (i == 0) && err == nil || (err == nil) != (i == 0) {
			t.Errorf("time %d: got %v, %v, want it once", i, later, err)
		}
	}
}
