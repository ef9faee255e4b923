package npy

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func TestStrings(t *testing.T) {
	memorytest.Check(t)
	for name, tc := range map[string]struct {
		shape *shape.Shape
		want  []string
	}{
		"text":         {shape.MustOf(2, 3, 7), []string{"a", "größe", "", "\U00010400", "b c", "d"}},
		"text_fortran": {shape.MustOf(2, 3, 3), []string{"a", "bcd", "", "e f", "\xff", "g"}},
	} {
		x := ok(ReadFile("testdata/" + name + ".npy"))(t)
		got, err := tensor.Strings(x)
		if err != nil || x.Shape() != tc.shape || !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q in %s (%v), want %q in %s", name, got, x.Shape(), err, tc.want, tc.shape)
		}
		var b bytes.Buffer
		if err := WriteStrings(&b, x); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again := ok(Read(&b))(t)
		back, err := tensor.Strings(again)
		if err != nil || again.Shape() != tc.shape || !slices.Equal(back, tc.want) {
			t.Errorf("%s: written and read again: got %q in %s (%v), want %q", name, back, again.Shape(), err, tc.want)
		}
		_, _ = x.Release(), again.Release()
	}
}

func TestStringsFaults(t *testing.T) {
	memorytest.Check(t)
	for name, tc := range map[string]struct {
		descr string
		data  []byte
		kind  error
		text  string
	}{
		"no length":       {"|S", nil, tensor.ErrCorrupt, "want the length of strings"},
		"a bad length":    {"<U-1", nil, tensor.ErrCorrupt, "want the length of strings"},
		"no characters":   {"|S0", nil, tensor.ErrUnsupported, "strings without a character"},
		"too short":       {"|S3", []byte("abcde"), tensor.ErrCorrupt, "got 5 bytes of data for u8[2,3], want 6"},
		"no byte order":   {"|U1", make([]byte, 8), tensor.ErrCorrupt, "without a byte order"},
		"no code point":   {"<U1", []byte{'a', 0, 0, 0, 0, 0xd8, 0, 0}, tensor.ErrCorrupt, "string 1: got 0xd800, want a code point"},
		"large number":    {"<U1", []byte{0, 0, 0, 0x80, 0, 0, 0, 0}, tensor.ErrCorrupt, "string 0: got 0x80000000"},
		"a NUL in it":     {"<U2", []byte{0, 0, 0, 0, 'a', 0, 0, 0, 'b', 0, 0, 0, 0, 0, 0, 0}, tensor.ErrUnsupported, "got a NUL at byte 0 of string 0"},
		"beyond all size": {"|S9223372036854775807", nil, tensor.ErrCorrupt, "npy: "},
	} {
		data := file("{'descr': '"+tc.descr+"', 'fortran_order': False, 'shape': (2,), }", tc.data...)
		wantError(t, name, second(Read(bytes.NewReader(data))), tc.kind, tc.text)
	}
	x := ok(tensor.Of([]float32{1}, 1))(t)
	wantError(t, "numbers", WriteStrings(new(bytes.Buffer), x), tensor.ErrDType, "got f32[1], want strings")
	_ = x.Release()
}
