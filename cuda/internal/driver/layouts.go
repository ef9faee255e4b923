package driver

// The structs of cuda.h that calls pass by pointer, laid out as on 64-bit
// machines. A test compares them with the header.

// memcpy2D is CUDA_MEMCPY2D, of version 2.
type memcpy2D struct {
	srcXInBytes   uint64
	srcY          uint64
	srcMemoryType MemoryType
	_             uint32
	srcHost       uint64
	srcDevice     Pointer
	srcArray      uint64
	srcPitch      uint64
	dstXInBytes   uint64
	dstY          uint64
	dstMemoryType MemoryType
	_             uint32
	dstHost       uint64
	dstDevice     Pointer
	dstArray      uint64
	dstPitch      uint64
	widthInBytes  uint64
	height        uint64
}

// memLocation is CUmemLocation.
type memLocation struct {
	kind uint32 // CUmemLocationType
	id   int32
}

// memAllocationProp is CUmemAllocationProp.
type memAllocationProp struct {
	kind                 uint32 // CUmemAllocationType
	requestedHandleTypes uint32 // CUmemAllocationHandleType
	location             memLocation
	win32HandleMetaData  uint64
	compressionType      uint8
	gpuDirectRDMACapable uint8
	usage                uint16
	reserved             [4]uint8
}

// memAccessDesc is CUmemAccessDesc.
type memAccessDesc struct {
	location memLocation
	flags    Access
}

// The constants of cuda.h that only calls use.
const (
	allocationTypePinned  = 1  // CU_MEM_ALLOCATION_TYPE_PINNED
	locationTypeDevice    = 1  // CU_MEM_LOCATION_TYPE_DEVICE
	handleTypePOSIX       = 1  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	attachGlobal          = 1  // CU_MEM_ATTACH_GLOBAL
	hostAllocPortable     = 1  // CU_MEMHOSTALLOC_PORTABLE
	captureRelaxed        = 2  // CU_STREAM_CAPTURE_MODE_RELAXED
	ipcLazyEnablePeer     = 1  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
	pointerContext        = 1  // CU_POINTER_ATTRIBUTE_CONTEXT
	pointerMemoryType     = 2  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
	pointerIsManaged      = 8  // CU_POINTER_ATTRIBUTE_IS_MANAGED
	pointerDeviceOrdinal  = 9  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
	pointerIPC            = 10 // CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
	jitInfoLogBuffer      = 3  // CU_JIT_INFO_LOG_BUFFER
	jitInfoLogBufferSize  = 4  // CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES
	jitErrorLogBuffer     = 5  // CU_JIT_ERROR_LOG_BUFFER
	jitErrorLogBufferSize = 6  // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
)

// memcpy2D returns the parameters of cuMemcpy2DAsync; false if a side of the
// copy does not have exactly one address.
func (c Copy2D) memcpy2D() (m memcpy2D, ok bool) {
	if (c.Src == 0) == (c.SrcHost == 0) || (c.Dst == 0) == (c.DstHost == 0) {
		return m, false
	}
	m.srcMemoryType, m.dstMemoryType = TypeDevice, TypeDevice
	if c.SrcHost != 0 {
		m.srcMemoryType = TypeHost
	}
	if c.DstHost != 0 {
		m.dstMemoryType = TypeHost
	}
	m.srcHost, m.srcDevice, m.srcPitch = uint64(c.SrcHost), c.Src, c.SrcPitch
	m.dstHost, m.dstDevice, m.dstPitch = uint64(c.DstHost), c.Dst, c.DstPitch
	m.widthInBytes, m.height = c.Width, c.Height
	return m, true
}

// layout returns the parameter of cuMemCreate.
func (p AllocationProp) layout() memAllocationProp {
	m := memAllocationProp{kind: allocationTypePinned, location: memLocation{locationTypeDevice, int32(p.Device)}}
	if p.Exportable {
		m.requestedHandleTypes = handleTypePOSIX
	}
	return m
}
