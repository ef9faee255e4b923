package oip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// TestContents writes elements together, alone, and in both ways, and wants the
// same bytes.
func TestContents(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []dtype.DType{dtype.Bool, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64, dtype.F32, dtype.F64} {
		number, form, _ := contentsField(d)
		for range 100 {
			n := r.IntN(20)
			want := make([]byte, n*d.Size())
			var contents, packed []byte
			flush := func() {
				if len(packed) > 0 {
					contents = protobuf.AppendBytes(contents, number, packed)
				}
				packed = nil
			}
			for i := range n {
				x := r.Uint64() >> (64 - 8*d.Size())
				if d == dtype.Bool {
					x &= 1
				}
				put(want, d.Size(), i, x)
				if d == dtype.I8 { // signed ones have all their bits in a message
					x = uint64(int8(x))
				} else if d == dtype.I16 {
					x = uint64(int16(x))
				} else if d == dtype.I32 {
					x = uint64(int32(x))
				}
				write := func(b []byte) []byte {
					switch form {
					case protobuf.Fixed32:
						return binary.LittleEndian.AppendUint32(b, uint32(x))
					case protobuf.Fixed64:
						return binary.LittleEndian.AppendUint64(b, x)
					}
					return binary.AppendUvarint(b, x)
				}
				if r.IntN(3) == 0 {
					flush()
					contents = write(protobuf.AppendTag(contents, number, form))
				} else {
					packed = write(packed)
				}
			}
			flush()
			got := make([]byte, len(want))
			if err := CheckContents(d, n, contents); err != nil {
				t.Errorf("%s: %v", d, err)
			}
			if err := FillContents(got, d, n, contents); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: got %x, %v of %x, want %x", d, got, err, contents, want)
			}
			for _, wrong := range []int{n - 1, n + 1} {
				if wrong >= 0 && FillContents(make([]byte, wrong*d.Size()), d, wrong, contents) == nil {
					t.Errorf("%s: got no error for %d of %d elements", d, wrong, n)
				}
			}
		}
	}
}

func TestWrongContents(t *testing.T) {
	varints := func(number int, list ...int64) []byte {
		var packed []byte
		for _, x := range list {
			packed = binary.AppendUvarint(packed, uint64(x))
		}
		return protobuf.AppendBytes(nil, number, packed)
	}
	for _, c := range []struct {
		d        dtype.DType
		contents []byte
		want     string
	}{
		{dtype.I8, varints(2, 128), "element 0: got 128, want an integer that INT8 holds"},
		{dtype.I8, varints(2, -129), "element 0: got -129, want an integer that INT8 holds"},
		{dtype.I16, varints(2, 40000), "element 0: got 40000"},
		{dtype.U8, varints(4, 256), "element 0: got 256, want an integer that UINT8 holds"},
		{dtype.U16, varints(4, 70000), "element 0: got 70000"},
		{dtype.F32, varints(6, 1), "behind the last whole number"},
		{dtype.F32, varints(2, 1), "got elements in field 2"},
		{dtype.I64, []byte{0x18}, "does not end"},
		{dtype.I64, []byte{0x1d, 0, 0, 0, 0}, "got the wire type 5"},
	} {
		err := FillContents(make([]byte, c.d.Size()), c.d, 1, c.contents)
		if !errors.Is(err, ErrMessage) || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), ErrMessage.Error()) != 1 {
			t.Errorf("%s of %x: got %v, want %q", c.d, c.contents, err, c.want)
		}
	}
	if err := CheckContents(dtype.F64, 1<<40, make([]byte, 100)); err == nil {
		t.Error("got no error for far fewer bytes than elements")
	}
	if list, err := ContentsStrings(2, protobuf.AppendBytes(protobuf.AppendBytes(nil, 8, "a\xff"), 8, "")); err != nil || len(list) != 2 || list[0] != "a\xff" || list[1] != "" {
		t.Errorf("got %q, %v", list, err)
	}
	for _, contents := range [][]byte{protobuf.AppendBytes(nil, 8, ""), protobuf.AppendBytes(nil, 7, ""), {0x40, 1}} {
		if _, err := ContentsStrings(2, contents); !errors.Is(err, ErrMessage) {
			t.Errorf("%x: got %v, want an error of the message", contents, err)
		}
	}
}

// TestAnswerMessage reads an answer with its tensors.
func TestAnswerMessage(t *testing.T) {
	a := Answer{Model: "m", Version: "3", ID: "i", Outputs: []Result{{Name: "y", Type: dtype.F32, Shape: []int{2, 0, 300}}, {Name: "s", Type: dtype.String, Shape: []int{}}}}
	b := a.AppendMessage(nil, "yes")
	b = append(AppendRawTag(b, 300), make([]byte, 300)...)
	b = AppendRawTag(b, 0)
	var got []string
	err := protobuf.Fields(b, func(number int, v protobuf.Value) error {
		got = append(got, string(rune('0'+number))+":"+string(v.Data[:min(len(v.Data), 40)]))
		return nil
	})
	want := []string{"1:m", "2:3", "3:i", "4:\n\x03yes\x12\x02\x08\x01", "5:\n\x01y\x12\x04FP32\x1a\x04\x02\x00\xac\x02", "5:\n\x01s\x12\x05BYTES", "6:" + strings.Repeat("\x00", 40), "6:"}
	if err != nil || strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
