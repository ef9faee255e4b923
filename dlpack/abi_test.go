package dlpack

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/dtype"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestLayout compares sizes and offsets with those that a C compiler computes
// from the header on 64-bit machines.
func TestLayout(t *testing.T) {
	var (
		d DLTensor
		l DLManagedTensor
		v DLManagedTensorVersioned
	)
	for _, c := range []struct {
		what      string
		got, want uintptr
	}{
		{"sizeof DLPackVersion", unsafe.Sizeof(Version{}), 8},
		{"sizeof DLDevice", unsafe.Sizeof(Device{}), 8},
		{"sizeof DLDataType", unsafe.Sizeof(DataType{}), 4},
		{"DLDataType.bits", unsafe.Offsetof(DataType{}.Bits), 1},
		{"DLDataType.lanes", unsafe.Offsetof(DataType{}.Lanes), 2},
		{"sizeof DLTensor", unsafe.Sizeof(d), 48},
		{"DLTensor.data", unsafe.Offsetof(d.Data), 0},
		{"DLTensor.device", unsafe.Offsetof(d.Device), 8},
		{"DLTensor.ndim", unsafe.Offsetof(d.NDim), 16},
		{"DLTensor.dtype", unsafe.Offsetof(d.DType), 20},
		{"DLTensor.shape", unsafe.Offsetof(d.Shape), 24},
		{"DLTensor.strides", unsafe.Offsetof(d.Strides), 32},
		{"DLTensor.byte_offset", unsafe.Offsetof(d.ByteOffset), 40},
		{"sizeof DLManagedTensor", unsafe.Sizeof(l), 64},
		{"DLManagedTensor.manager_ctx", unsafe.Offsetof(l.ManagerCtx), 48},
		{"DLManagedTensor.deleter", unsafe.Offsetof(l.Deleter), 56},
		{"sizeof DLManagedTensorVersioned", unsafe.Sizeof(v), 80},
		{"DLManagedTensorVersioned.manager_ctx", unsafe.Offsetof(v.ManagerCtx), 8},
		{"DLManagedTensorVersioned.deleter", unsafe.Offsetof(v.Deleter), 16},
		{"DLManagedTensorVersioned.flags", unsafe.Offsetof(v.Flags), 24},
		{"DLManagedTensorVersioned.dl_tensor", unsafe.Offsetof(v.Tensor), 32},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.what, c.got, c.want)
		}
	}
}

// dump is a struct as C sees it, 16 bytes a line.
func dump[T any](x *T) string {
	var sb strings.Builder
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(x)), unsafe.Sizeof(*x))
	for at := 0; at < len(bytes); at += 16 {
		fmt.Fprintf(&sb, "%02x  %s\n", at, hex.EncodeToString(bytes[at:min(at+16, len(bytes))]))
	}
	return sb.String()
}

// TestGoldenBytes compares every struct, and every element type and device in
// one, with the bytes in testdata/bytes.txtar.
func TestGoldenBytes(t *testing.T) {
	tensor := DLTensor{
		Data: 0x1111_2222_3333_4440, Device: Device{CPU, 7}, NDim: 3, DType: DataType{Float, 32, 1},
		Shape: 0x5555_6666_7777_8880, Strides: 0x9999_aaaa_bbbb_ccc0, ByteOffset: 0x0102_0304_0506_0708,
	}
	got := map[string]string{
		"DLTensor":        dump(&tensor),
		"DLManagedTensor": dump(&DLManagedTensor{Tensor: tensor, ManagerCtx: 0xd0d1_d2d3_d4d5_d6d7, Deleter: 0xe0e1_e2e3_e4e5_e6e7}),
		"DLManagedTensorVersioned": dump(&DLManagedTensorVersioned{
			Version: Version{MajorVersion, MinorVersion}, ManagerCtx: 0xd0d1_d2d3_d4d5_d6d7, Deleter: 0xe0e1_e2e3_e4e5_e6e7,
			Flags: FlagReadOnly | FlagCopied | FlagSubBytePadded, Tensor: tensor,
		}),
	}
	var types, devices strings.Builder
	for d := dtype.Invalid + 1; d.IsValid(); d++ {
		if code, bits, lanes, ok := d.DLPack(); ok {
			dt := DataType{TypeCode(code), bits, lanes}
			fmt.Fprintf(&types, "%s %s", d, dump(&dt))
		}
	}
	for d := DeviceType(0); d < 32; d++ {
		if d.IsKnown() {
			dev := Device{d, 1}
			fmt.Fprintf(&devices, "%s %s", d, dump(&dev))
		}
	}
	got["element types"], got["devices"] = types.String(), devices.String()

	const file = "testdata/bytes.txtar"
	want, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Files) != len(got) {
		t.Errorf("%s: got %d sections, want %d", file, len(want.Files), len(got))
	}
	for i, f := range want.Files {
		if string(f.Data) != got[f.Name] {
			t.Errorf("%s: got\n%swant\n%s", f.Name, got[f.Name], f.Data)
		}
		want.Files[i].Data = []byte(got[f.Name])
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCodes holds the codes to the numbers of the header, and to those of
// package dtype.
func TestCodes(t *testing.T) {
	if Float4E2M1FN != 17 || BComplex != 18 || Bool != 6 || Float8E8M0FNU != 14 || knownFlags != 7 {
		t.Errorf("got codes %d %d %d %d and flags %d, want 17 18 6 14 and 7", Float4E2M1FN, BComplex, Bool, Float8E8M0FNU, knownFlags)
	}
	for code, bits := range map[TypeCode]uint8{Int: 4, UInt: 2, Float: 16, OpaqueHandle: 64, BFloat: 16, Complex: 128, Bool: 8, Float6E2M3FN: 6, Float4E2M1FN: 4, BComplex: 32} {
		d, err := dtype.FromDLPack(uint8(code), bits, 1)
		if err != nil {
			t.Errorf("code %d with %d bits: %v", code, bits, err)
			continue
		}
		if c, b, _, ok := d.DLPack(); !ok || TypeCode(c) != code || b != bits {
			t.Errorf("%s: got code %d with %d bits back, want %d with %d", d, c, b, code, bits)
		}
	}
	if CPU.String() != "cpu" || DeviceType(5).String() != "device(5)" || DeviceType(5).IsKnown() || !Ascend.IsKnown() {
		t.Errorf("got %s, %s, known %t, %t; want cpu, device(5), false, true", CPU, DeviceType(5), DeviceType(5).IsKnown(), Ascend.IsKnown())
	}
}
