package onnx

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestKeep drops the weights that a program does not have: their buffers go
// back, and bytes that another weight shares stay.
func TestKeep(t *testing.T) {
	memorytest.Check(t)
	w := newWeights()
	typ := op.Type{DType: dtype.F32, Shape: shape.MustOf(100)}
	part := op.Type{DType: dtype.F32, Shape: shape.MustOf(10)}
	var shared []byte
	for _, name := range []string{"kept", "dropped", "whole"} {
		data, err := w.New(name, typ)
		if err != nil {
			t.Fatal(err)
		}
		data[80] = 7
		shared = data
	}
	if err := w.Share("part", part, shared[80:120:120]); err != nil {
		t.Fatal(err)
	}
	before := memory.Stats().Of(memory.Weights)
	p := &ir.Program{}
	for _, name := range []string{"kept", "part"} {
		p.Weights = append(p.Weights, &ir.Value{Kind: ir.Weight, Name: name})
	}
	if err := w.Keep(p); err != nil {
		t.Fatal(err)
	}
	after := memory.Stats().Of(memory.Weights)
	if got := before.Buffers - after.Buffers; got != 1 {
		t.Errorf("got %d buffers back, want 1: whole's bytes are part's too", got)
	}
	if got := w.Figures().Made; got != 400 {
		t.Errorf("got %d bytes counted as made, want the 400 of kept", got)
	}
	if data, ok := w.Bytes(&ir.Value{Name: "part"}); !ok || data[0] != 7 {
		t.Errorf("got %v, %v for the shared part, want its bytes", data, ok)
	}
	if _, ok := w.Bytes(&ir.Value{Name: "dropped"}); ok {
		t.Error("a dropped weight still has bytes")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
