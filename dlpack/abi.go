package dlpack

import (
	"fmt"
	"unsafe"
)

// The structs below have the layout of the C structs of the same names on
// 64-bit machines. Their pointers are numbers: a struct may be in C memory or
// in Go memory, and the values that foreign code wrote need not be valid
// pointers.

// The version of DLPack that this package writes. It knows all codes that minor
// versions up to this one define.
const (
	MajorVersion = 1
	MinorVersion = 3
)

// Version is DLPackVersion. A change of Major changes the layout of everything
// behind Flags.
type Version struct {
	Major, Minor uint32
}

// Device is DLDevice.
type Device struct {
	Type DeviceType
	ID   int32
}

// DataType is DLDataType.
type DataType struct {
	Code  TypeCode
	Bits  uint8
	Lanes uint16
}

// DLTensor describes an array that another library owns. Strides count
// elements; ByteOffset is the position of the first element in Data.
type DLTensor struct {
	Data       uintptr
	Device     Device
	NDim       int32
	DType      DataType
	Shape      uintptr // of NDim int64
	Strides    uintptr // of NDim int64
	ByteOffset uint64
}

// DLManagedTensor is the unversioned struct of DLPack before 1.0, which cannot
// mark memory as read-only.
type DLManagedTensor struct {
	Tensor     DLTensor
	ManagerCtx uintptr
	Deleter    uintptr // void (*)(DLManagedTensor *)
}

// DLManagedTensorVersioned is the struct of DLPack 1.x. The fields up to Flags
// have the same offsets in every major version, so the deleter can always be
// called.
type DLManagedTensorVersioned struct {
	Version    Version
	ManagerCtx uintptr
	Deleter    uintptr // void (*)(DLManagedTensorVersioned *)
	Flags      Flags
	Tensor     DLTensor
}

// Flags are the flags of a DLManagedTensorVersioned.
type Flags uint64

// The flags.
const (
	FlagReadOnly      Flags = 1 << iota // must not be written
	FlagCopied                          // made for this exchange: the consumer is its only holder
	FlagSubBytePadded                   // elements of less than a byte take a byte each
	knownFlags        = 1<<iota - 1
)

// TypeCode is DLDataTypeCode. Together with the number of bits it names an
// element type; see [dtype.FromDLPack].
type TypeCode uint8

// The type codes.
const (
	Int TypeCode = iota
	UInt
	Float
	OpaqueHandle
	BFloat
	Complex
	Bool
	Float8E3M4
	Float8E4M3
	Float8E4M3B11FNUZ
	Float8E4M3FN
	Float8E4M3FNUZ
	Float8E5M2
	Float8E5M2FNUZ
	Float8E8M0FNU
	Float6E2M3FN
	Float6E3M2FN
	Float4E2M1FN
	BComplex // pairs of bfloat16
)

// DeviceType is DLDeviceType. Values 5 and 6 are not in use.
type DeviceType int32

// The device types.
const (
	CPU         DeviceType = 1
	CUDA        DeviceType = 2
	CUDAHost    DeviceType = 3 // host memory, pinned for CUDA
	OpenCL      DeviceType = 4
	Vulkan      DeviceType = 7
	Metal       DeviceType = 8
	VPI         DeviceType = 9
	ROCM        DeviceType = 10
	ROCMHost    DeviceType = 11 // host memory, pinned for ROCm
	ExtDev      DeviceType = 12
	CUDAManaged DeviceType = 13
	OneAPI      DeviceType = 14
	WebGPU      DeviceType = 15
	Hexagon     DeviceType = 16
	MAIA        DeviceType = 17
	Trn         DeviceType = 18
	TPU         DeviceType = 19
	TPUHost     DeviceType = 20 // host memory, pinned for TPUs
	Ascend      DeviceType = 21
)

var deviceNames = map[DeviceType]string{
	CPU: "cpu", CUDA: "cuda", CUDAHost: "cuda_host", OpenCL: "opencl", Vulkan: "vulkan", Metal: "metal", VPI: "vpi", ROCM: "rocm",
	ROCMHost: "rocm_host", ExtDev: "ext_dev", CUDAManaged: "cuda_managed", OneAPI: "oneapi", WebGPU: "webgpu", Hexagon: "hexagon",
	MAIA: "maia", Trn: "trn", TPU: "tpu", TPUHost: "tpu_host", Ascend: "ascend",
}

// IsKnown reports whether the code is one of the constants above.
func (d DeviceType) IsKnown() bool { return deviceNames[d] != "" }

// String returns the name in lower case.
func (d DeviceType) String() string {
	if name := deviceNames[d]; name != "" {
		return name
	}
	return fmt.Sprintf("device(%d)", int32(d))
}

// onHost reports whether the processor can read and write the memory of such a
// device.
func (d DeviceType) onHost() bool { return d == CPU || d == CUDAHost || d == ROCMHost || d == TPUHost }

// pointer converts an address from a struct into a pointer. It is not an
// address of Go memory, or its owner keeps the object alive.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
