package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// layouts has the size or the offset of what cuda.h 12.9 declares, as gcc
// computes it from the expression of C.
var layouts = []struct {
	c    string
	got  uintptr
	want uintptr
}{
	{"sizeof(CUDA_MEMCPY2D)", unsafe.Sizeof(memcpy2D{}), 128},
	{"offsetof(CUDA_MEMCPY2D, srcXInBytes)", unsafe.Offsetof(memcpy2D{}.srcXInBytes), 0},
	{"offsetof(CUDA_MEMCPY2D, srcY)", unsafe.Offsetof(memcpy2D{}.srcY), 8},
	{"offsetof(CUDA_MEMCPY2D, srcMemoryType)", unsafe.Offsetof(memcpy2D{}.srcMemoryType), 16},
	{"offsetof(CUDA_MEMCPY2D, srcHost)", unsafe.Offsetof(memcpy2D{}.srcHost), 24},
	{"offsetof(CUDA_MEMCPY2D, srcDevice)", unsafe.Offsetof(memcpy2D{}.srcDevice), 32},
	{"offsetof(CUDA_MEMCPY2D, srcArray)", unsafe.Offsetof(memcpy2D{}.srcArray), 40},
	{"offsetof(CUDA_MEMCPY2D, srcPitch)", unsafe.Offsetof(memcpy2D{}.srcPitch), 48},
	{"offsetof(CUDA_MEMCPY2D, dstXInBytes)", unsafe.Offsetof(memcpy2D{}.dstXInBytes), 56},
	{"offsetof(CUDA_MEMCPY2D, dstY)", unsafe.Offsetof(memcpy2D{}.dstY), 64},
	{"offsetof(CUDA_MEMCPY2D, dstMemoryType)", unsafe.Offsetof(memcpy2D{}.dstMemoryType), 72},
	{"offsetof(CUDA_MEMCPY2D, dstHost)", unsafe.Offsetof(memcpy2D{}.dstHost), 80},
	{"offsetof(CUDA_MEMCPY2D, dstDevice)", unsafe.Offsetof(memcpy2D{}.dstDevice), 88},
	{"offsetof(CUDA_MEMCPY2D, dstArray)", unsafe.Offsetof(memcpy2D{}.dstArray), 96},
	{"offsetof(CUDA_MEMCPY2D, dstPitch)", unsafe.Offsetof(memcpy2D{}.dstPitch), 104},
	{"offsetof(CUDA_MEMCPY2D, WidthInBytes)", unsafe.Offsetof(memcpy2D{}.widthInBytes), 112},
	{"offsetof(CUDA_MEMCPY2D, Height)", unsafe.Offsetof(memcpy2D{}.height), 120},
	{"sizeof(CUmemAllocationProp)", unsafe.Sizeof(memAllocationProp{}), 32},
	{"offsetof(CUmemAllocationProp, type)", unsafe.Offsetof(memAllocationProp{}.kind), 0},
	{"offsetof(CUmemAllocationProp, requestedHandleTypes)", unsafe.Offsetof(memAllocationProp{}.requestedHandleTypes), 4},
	{"offsetof(CUmemAllocationProp, location)", unsafe.Offsetof(memAllocationProp{}.location), 8},
	{"offsetof(CUmemAllocationProp, win32HandleMetaData)", unsafe.Offsetof(memAllocationProp{}.win32HandleMetaData), 16},
	{"offsetof(CUmemAllocationProp, allocFlags.compressionType)", unsafe.Offsetof(memAllocationProp{}.compressionType), 24},
	{"offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable)", unsafe.Offsetof(memAllocationProp{}.gpuDirectRDMACapable), 25},
	{"offsetof(CUmemAllocationProp, allocFlags.usage)", unsafe.Offsetof(memAllocationProp{}.usage), 26},
	{"offsetof(CUmemAllocationProp, allocFlags.reserved)", unsafe.Offsetof(memAllocationProp{}.reserved), 28},
	{"sizeof(CUmemLocation)", unsafe.Sizeof(memLocation{}), 8},
	{"offsetof(CUmemLocation, type)", unsafe.Offsetof(memLocation{}.kind), 0},
	{"offsetof(CUmemLocation, id)", unsafe.Offsetof(memLocation{}.id), 4},
	{"sizeof(CUmemAccessDesc)", unsafe.Sizeof(memAccessDesc{}), 12},
	{"offsetof(CUmemAccessDesc, location)", unsafe.Offsetof(memAccessDesc{}.location), 0},
	{"offsetof(CUmemAccessDesc, flags)", unsafe.Offsetof(memAccessDesc{}.flags), 8},
	{"sizeof(CUipcMemHandle)", unsafe.Sizeof(IPCHandle{}), 64},
	{"sizeof(CUipcEventHandle)", unsafe.Sizeof(IPCHandle{}), 64},
	{"sizeof(CUuuid)", unsafe.Sizeof([16]byte{}), 16},
	{"sizeof(CUdevice)", unsafe.Sizeof(Device(0)), 4},
	{"sizeof(CUdeviceptr)", unsafe.Sizeof(Pointer(0)), 8},
	{"sizeof(CUmemGenericAllocationHandle)", unsafe.Sizeof(Memory(0)), 8},
	{"sizeof(CUresult)", unsafe.Sizeof(Result(0)), 4},
	{"sizeof(CUpointer_attribute)", 4, 4},
	{"sizeof(CUjit_option)", 4, 4},
}

// constants has the values of enumerations and macros of cuda.h.
var constants = map[string]int{
	"CU_STREAM_LEGACY": int(LegacyStream), "CU_STREAM_PER_THREAD": int(PerThreadStream), "CU_STREAM_NON_BLOCKING": int(StreamNonBlocking),
	"CU_EVENT_BLOCKING_SYNC": int(EventBlockingSync), "CU_EVENT_DISABLE_TIMING": int(EventDisableTiming), "CU_EVENT_INTERPROCESS": int(EventInterprocess),
	"CU_MEM_ALLOCATION_TYPE_PINNED": allocationTypePinned, "CU_MEM_LOCATION_TYPE_DEVICE": locationTypeDevice, "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR": handleTypePOSIX,
	"CU_MEM_ATTACH_GLOBAL": attachGlobal, "CU_MEMHOSTALLOC_PORTABLE": hostAllocPortable, "CU_STREAM_CAPTURE_MODE_RELAXED": captureRelaxed, "CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS": ipcLazyEnablePeer,
	"CU_POINTER_ATTRIBUTE_CONTEXT": pointerContext, "CU_POINTER_ATTRIBUTE_MEMORY_TYPE": pointerMemoryType, "CU_POINTER_ATTRIBUTE_IS_MANAGED": pointerIsManaged, "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": pointerDeviceOrdinal,
	"CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE": pointerIPC,
	"CU_JIT_INFO_LOG_BUFFER":                          jitInfoLogBuffer, "CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES": jitInfoLogBufferSize, "CU_JIT_ERROR_LOG_BUFFER": jitErrorLogBuffer, "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": jitErrorLogBufferSize,
	"CU_MEMORYTYPE_HOST": int(TypeHost), "CU_MEMORYTYPE_DEVICE": int(TypeDevice), "CU_MEMORYTYPE_UNIFIED": int(TypeUnified),
	"CU_MEM_ACCESS_FLAGS_PROT_READ": int(AccessRead), "CU_MEM_ACCESS_FLAGS_PROT_READWRITE": int(AccessReadWrite), "CU_MEM_ALLOC_GRANULARITY_RECOMMENDED": int(GranularityRecommended),
	"CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK": int(MaxThreadsPerBlock), "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK": int(MaxSharedMemoryPerBlock), "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": int(MultiprocessorCount),
	"CU_DEVICE_ATTRIBUTE_INTEGRATED": int(Integrated), "CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY": int(CanMapHostMemory), "CU_DEVICE_ATTRIBUTE_PCI_BUS_ID": int(PCIBusID), "CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID": int(PCIDeviceID),
	"CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID": int(PCIDomainID), "CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING": int(UnifiedAddressing), "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": int(ComputeCapabilityMajor),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": int(ComputeCapabilityMinor), "CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY": int(ManagedMemory), "CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED": int(VirtualMemoryManagementSupported),
	"CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED": int(HandleTypePOSIXDescriptorSupported), "CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED": int(MemoryPoolsSupported), "CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED": int(IPCEventSupported),
	"CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": int(FuncMaxThreadsPerBlock), "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": int(FuncSharedBytes), "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": int(FuncLocalBytes), "CU_FUNC_ATTRIBUTE_NUM_REGS": int(FuncRegisters),
}

func TestLayouts(t *testing.T) {
	for _, l := range layouts {
		if l.got != l.want {
			t.Errorf("%s: got %d, want %d", l.c, l.got, l.want)
		}
	}
}

// TestHeader compares layouts, constants and results with cuda.h itself.
func TestHeader(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to compile cuda.h")
	}
	include := ""
	for _, dir := range []string{os.Getenv("TENURE_CUDA_INCLUDE"), os.Getenv("CUDA_HOME") + "/include", "/usr/local/cuda/include", "/usr/include"} {
		if _, err := os.Stat(filepath.Join(dir, "cuda.h")); err == nil {
			include = dir
			break
		}
	}
	if include == "" {
		t.Skip("no cuda.h of CUDA 12.9 or newer in $TENURE_CUDA_INCLUDE, $CUDA_HOME/include or the usual folders")
	}
	var c strings.Builder
	c.WriteString("#include <stddef.h>\n#include <cuda.h>\n")
	assert := func(condition string) { fmt.Fprintf(&c, "_Static_assert(%s, \"\");\n", condition) }
	for _, l := range layouts {
		assert(fmt.Sprintf("%s == %d", l.c, l.want))
	}
	for name, v := range constants {
		assert(fmt.Sprintf("(size_t)%s == %d", name, v))
	}
	for r, text := range texts {
		assert(fmt.Sprintf("%s == %d", text.symbol, uint32(r)))
	}
	file := filepath.Join(t.TempDir(), "check.c")
	if err := os.WriteFile(file, []byte(c.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-std=c11", "-fsyntax-only", "-I", include, file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
