package onnx

import (
	"bytes"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// stringFiles are files of tensors of strings.
func stringFiles(t testing.TB) [][]byte {
	t.Helper()
	var files [][]byte
	for _, list := range [][]string{{"a", "größe", ""}, {}} {
		x, err := tensor.OfStrings(list, len(list))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteStrings(&b, "s", x); err != nil {
			t.Fatal(err)
		}
		files = append(files, b.Bytes())
		if err := x.Release(); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// valueFile is a file of a sequence, an optional or a map.
func valueFile(t testing.TB, v *FileValue, text bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteValue(&b, v, text); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzReadValue reads sequences, optionals and maps of any content. What was
// read is written, and read again.
func FuzzReadValue(f *testing.F) {
	memorytest.Check(f)
	of := func(x *tensor.Tensor, err error) *tensor.Tensor {
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { x.Release() })
		return x
	}
	a, b := of(tensor.Of([]float32{1, 2, 3, 4}, 2, 2)), of(tensor.Of([]float32{5}, 1))
	words, numbers := of(tensor.OfStrings([]string{"x", "yes"}, 2)), of(tensor.Of([]int64{7, -1}, 2))
	f.Add(uint8(Sequence), valueFile(f, &FileValue{Name: "s", Kind: Sequence, Items: []*tensor.Tensor{a, b}}, false))
	f.Add(uint8(Sequence), valueFile(f, &FileValue{Kind: Sequence, Items: []*tensor.Tensor{words}}, true))
	f.Add(uint8(Sequence), valueFile(f, &FileValue{Kind: Sequence}, false))
	f.Add(uint8(Optional), valueFile(f, &FileValue{Name: "o", Kind: Optional, Items: []*tensor.Tensor{numbers}}, false))
	f.Add(uint8(Optional), valueFile(f, &FileValue{Kind: Optional, Absent: true}, false))
	f.Add(uint8(OptionalSequence), valueFile(f, &FileValue{Kind: OptionalSequence, Items: []*tensor.Tensor{b, a}}, false))
	f.Add(uint8(OptionalSequence), valueFile(f, &FileValue{Kind: OptionalSequence, Absent: true}, false))
	f.Add(uint8(Map), valueFile(f, &FileValue{Name: "m", Kind: Map, Keys: words, Values: numbers}, false))
	f.Add(uint8(MapSequence), valueFile(f, &FileValue{Kind: MapSequence, Keys: numbers, Values: a}, false))
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		if Kind(kind) < Sequence || Kind(kind) > MapSequence {
			return
		}
		v, err := ReadValue(data, Kind(kind))
		if err != nil {
			return
		}
		if again, err := ReadValue(valueFile(t, v, false), v.Kind); err != nil {
			t.Errorf("what was read and written: %v", err)
		} else if err := again.Release(); err != nil {
			t.Error(err)
		}
		if err := v.Release(); err != nil {
			t.Error(err)
		}
	})
}
