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

func weightOf(name string, elements int) *ir.Value {
	return &ir.Value{Kind: ir.Weight, Name: name, Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(elements)}}
}

// TestMove gives the memory of a weight back for a copy elsewhere, and takes
// along what lies in the same buffer.
func TestMove(t *testing.T) {
	memorytest.Check(t)
	w := newWeights()
	defer w.Close()
	v, part, other := weightOf("v", 4), weightOf("part", 2), weightOf("other", 4)
	for _, x := range []*ir.Value{v, other} {
		if err := w.Add(x.Name, x.Type, []byte("0123456789abcdef")); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := w.Bytes(v)
	if err := w.Share("part", part.Type, data[4:12]); err != nil {
		t.Fatal(err)
	}
	held, _ := w.Bytes(other)
	w.Hold(held)
	if data, err := w.Private(other); err != nil || data != nil {
		t.Errorf("a weight that is held: got %q, %v, want that it stays", data, err)
	}
	private, err := w.Private(part)
	if err != nil || string(private) != "0123456789abcdef" {
		t.Fatalf("got %q, %v, want the whole buffer", private, err)
	}
	to := bytes.Clone(private)
	if err := w.Move(part, to); err != nil {
		t.Fatal(err)
	}
	for x, want := range map[*ir.Value]string{v: "0123456789abcdef", part: "456789ab"} {
		got, ok := w.Bytes(x)
		if !ok || string(got) != want || addressOf(got) < addressOf(to) || addressOf(got) >= addressOf(to)+16 || cap(got) != len(got) {
			t.Errorf("%s: got %q at another place, want %q in the copy", x.Name, got, want)
		}
		if data, err := w.Private(x); err != nil || data != nil {
			t.Errorf("%s: got %q, %v, want nothing private", x.Name, data, err)
		}
		if w.Sparable(x, true) {
			t.Errorf("%s: sparable, want it to stay", x.Name)
		}
	}
	if got := w.Figures(); got != (WeightFigures{Made: 16, Shared: 16}) {
		t.Errorf("got %+v, want one weight made and one shared", got)
	}
	if private, shared := w.InMemory(); private != 16 || shared != 0 {
		t.Errorf("got %d private and %d shared bytes, want the one that is held", private, shared)
	}
	if err := w.Move(v, to); err == nil {
		t.Error("moved twice: got no error")
	}
}

// TestMoveUnaligned moves a weight out of its file, in which it is read at
// whatever address, mapped or not.
func TestMoveUnaligned(t *testing.T) {
	memorytest.Check(t)
	const n = copiedLate / 4
	want := floatsRaw(n)
	for pad := range 4 {
		m := parseModelText(t, "opset 13\ninput x f32[n]\ny = Add(x, w)\noutput y f32[n]")
		m.producer = strings.Repeat("p", 1+pad)
		m.graph.initializers = []tensorProto{{name: "w", dims: []int64{n}, dataType: 1, raw: want}}
		path := writeModel(t, m)
		for _, read := range []bool{false, true} {
			model, err := Load(path, Options{Read: read})
			if err != nil {
				t.Fatal(err)
			}
			w, v := model.Weights, model.Program.Weights[0]
			private, err := w.Private(v)
			if err != nil {
				t.Fatal(err)
			}
			if private == nil { // read where it lies in the mapped file
				if data, _ := w.Bytes(v); read || !aligned(data, dtype.F32) {
					t.Errorf("offset %d, read %v: got nothing private", pad, read)
				}
			} else if err := w.Move(v, bytes.Clone(private)); err != nil {
				t.Fatal(err)
			}
			got, ok := w.Bytes(v)
			if !ok || !bytes.Equal(got, want) || private != nil && w.Figures().Shared != copiedLate {
				t.Errorf("offset %d, read %v: got other bytes or figures %+v", pad, read, w.Figures())
			}
			if now, _ := w.InMemory(); !read && now != 0 {
				t.Errorf("offset %d: got %d private bytes, want none", pad, now)
			}
			if err := model.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestCopy reads a file into memory that somebody else gives.
func TestCopy(t *testing.T) {
	memorytest.Check(t)
	m := parseModelText(t, "opset 13\ninput x f32[n]\ny = Add(x, w)\noutput y f32[n]")
	m.graph.initializers = []tensorProto{{name: "w", dims: []int64{2}, dataType: 1, raw: floatsRaw(2)}}
	copies := 0
	model, err := Load(writeModel(t, m), Options{Read: true, Copy: func(data []byte) (*memory.Buffer, error) {
		copies++
		b, err := memory.Alloc(len(data), memory.Shared)
		if err == nil {
			copy(b.Bytes(), data)
		}
		return b, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	private, shared := model.Weights.InMemory()
	if copies != 1 || shared != int64(len(encodeModel(m))) {
		t.Errorf("got %d copies, %d private and %d shared bytes, want the file in shared ones", copies, private, shared)
	}
}
