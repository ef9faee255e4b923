package dtype

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPackedOrder(t *testing.T) {
	for _, c := range []struct {
		d        DType
		elements []uint8
		want     []byte
	}{
		{U4, []uint8{0x1, 0x2, 0xf}, []byte{0x21, 0x0f}},
		{F4E2M1, []uint8{0x1, 0x0, 0x2, 0xe}, []byte{0x01, 0xe2}},
		{I2, []uint8{1, 2, 3, 0, 1}, []byte{0b00_11_10_01, 0b01}},
		{F6E3M2FN, []uint8{0b000001, 0b000010, 0b110000, 0b111111}, []byte{0b10_000001, 0b0000_0000, 0b111111_11}},
	} {
		n, err := c.d.ByteLen(len(c.elements))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, n)
		for i, v := range c.elements {
			c.d.PackedPut(got, i, v)
		}
		if !bytes.Equal(got, c.want) {
			t.Errorf("%v: got %08b, want %08b", c.d, got, c.want)
		}
	}
}

// Against a model that keeps every bit of the tensor in its own element.
func TestPackedAgainstBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]DType{I4, U4, F4E2M1, I2, U2, F6E2M3FN, F6E3M2FN}).Draw(t, "type")
		n := rapid.IntRange(1, 20).Draw(t, "n")
		size, err := d.ByteLen(n)
		if err != nil {
			t.Fatal(err)
		}
		data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
		bits := make([]bool, 8*size)
		for i := range bits {
			bits[i] = data[i/8]>>(i%8)&1 == 1
		}
		for range rapid.IntRange(1, 10).Draw(t, "writes") {
			i, v := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.Byte().Draw(t, "v")
			d.PackedPut(data, i, v)
			for k := range d.Bits() {
				bits[i*d.Bits()+k] = v>>k&1 == 1
			}
		}
		for i := range n {
			var want uint8
			for k := range d.Bits() {
				if bits[i*d.Bits()+k] {
					want |= 1 << k
				}
			}
			if got := d.PackedAt(data, i); got != want {
				t.Fatalf("%v: element %d: got %#x, want %#x", d, i, got, want)
			}
		}
		for i := range bits {
			if data[i/8]>>(i%8)&1 == 1 != bits[i] {
				t.Fatalf("%v: bit %d changed", d, i)
			}
		}
	})
}

func TestPackedOfWholeBytesIsABug(t *testing.T) {
	for _, d := range []DType{Invalid, U8, F32, String} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "BUG:") {
					t.Errorf("%v: got panic %q, want one that starts with BUG:", d, got)
				}
			}()
			d.PackedAt(make([]byte, 8), 0)
		}()
	}
}

// The patterns beyond a type's width are not part of it.
func TestFromBitsDropsTheRest(t *testing.T) {
	if got := Float4E2M1FromBits(0xf7); got != Float4E2M1FromFloat32(6) || got.Bits() != 7 {
		t.Errorf("f4e2m1: got %#x, want 7", got.Bits())
	}
	if got := Float6E2M3FNFromBits(0xdf); got != Float6E2M3FNFromFloat32(7.5) || got.Bits() != 0x1f {
		t.Errorf("f6e2m3fn: got %#x, want 0x1f", got.Bits())
	}
	if got := Float6E3M2FNFromBits(0xdf); got != Float6E3M2FNFromFloat32(28) || got.Bits() != 0x1f {
		t.Errorf("f6e3m2fn: got %#x, want 0x1f", got.Bits())
	}
}
