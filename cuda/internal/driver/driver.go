// Package driver is the interface of the CUDA driver, as far as package cuda
// uses it. [Open] binds the driver's library; package fake has an
// implementation without a device, for tests.
//
// Every method is one call of the driver, has its name, and fails with the
// [Result] that it returned. Handles are values of the driver, which checks
// them; 0 is none. A method that works in a context takes it and makes it
// current first, because a goroutine has no thread of its own.
//
// # Concurrency
//
// All methods may be called from any goroutine.
package driver

// Handles of the driver.
type (
	Device   int32   // CUdevice, an ordinal
	Context  uintptr // CUcontext
	Stream   uintptr // CUstream
	Event    uintptr // CUevent
	Module   uintptr // CUmodule
	Function uintptr // CUfunction
	Memory   uint64  // CUmemGenericAllocationHandle
	Pool     uintptr // CUmemoryPool
	Graph    uintptr // CUgraph
	Exec     uintptr // CUgraphExec
	Pointer  uint64  // CUdeviceptr, an address of the unified address space
)

// Streams that the driver knows without creating them.
const (
	LegacyStream    Stream = 1 // CU_STREAM_LEGACY, the default stream, which waits for all blocking streams
	PerThreadStream Stream = 2 // CU_STREAM_PER_THREAD
)

// Driver is the table of the driver's functions.
type Driver interface {
	// Name says where the functions come from: a file, or a fake.
	Name() string

	// Init is cuInit(0).
	Init() error
	// DriverGetVersion returns 1000 times the major version plus 10 times
	// the minor one.
	DriverGetVersion() (int, error)
	DeviceGetCount() (int, error)
	DeviceGet(ordinal int) (Device, error)
	DeviceGetName(Device) (string, error)
	DeviceGetUUID(Device) ([16]byte, error)
	DeviceTotalMem(Device) (uint64, error)
	DeviceGetAttribute(Attribute, Device) (int, error)
	DeviceCanAccessPeer(dev, peer Device) (bool, error)

	DevicePrimaryCtxRetain(Device) (Context, error)
	DevicePrimaryCtxRelease(Device) error
	CtxSynchronize(Context) error
	// CtxEnablePeerAccess lets work in ctx access memory of peer. That it
	// is enabled already is no error.
	CtxEnablePeerAccess(ctx, peer Context) error
	// CtxRecordEvent makes e complete when all work that was submitted in
	// ctx before, on any stream, has. Drivers before 12.5 lack it:
	// ErrNotFound.
	CtxRecordEvent(ctx Context, e Event) error
	// MemGetInfo returns the bytes of the device that are free and its total.
	MemGetInfo(Context) (free, total uint64, err error)

	StreamCreate(ctx Context, flags StreamFlags, priority int) (Stream, error)
	StreamDestroy(Context, Stream) error
	StreamSynchronize(Context, Stream) error
	// StreamQuery reports whether all work of the stream has completed.
	StreamQuery(Context, Stream) (bool, error)
	StreamWaitEvent(Context, Stream, Event) error
	// LaunchHostFunc calls the C function fn(arg) on a thread of the driver
	// when earlier work of the stream is done. It must not call the driver.
	LaunchHostFunc(ctx Context, s Stream, fn, arg uintptr) error

	EventCreate(ctx Context, flags EventFlags) (Event, error)
	EventDestroy(Context, Event) error
	EventRecord(Context, Event, Stream) error
	// EventQuery reports whether the work that the event was last recorded
	// behind has completed; true for an event that was never recorded.
	EventQuery(Context, Event) (bool, error)
	EventSynchronize(Context, Event) error
	// EventElapsedTime returns the milliseconds between two events with timing.
	EventElapsedTime(ctx Context, from, to Event) (float32, error)

	MemGetAllocationGranularity(AllocationProp, GranularityOption) (uint64, error)
	MemAddressReserve(size, alignment uint64) (Pointer, error)
	MemAddressFree(p Pointer, size uint64) error
	MemCreate(size uint64, prop AllocationProp) (Memory, error)
	MemRelease(Memory) error
	MemMap(p Pointer, size, offset uint64, m Memory) error
	MemUnmap(p Pointer, size uint64) error
	MemSetAccess(p Pointer, size uint64, dev Device, access Access) error
	// MemExportToShareableHandle returns a POSIX descriptor that the caller
	// closes.
	MemExportToShareableHandle(Memory) (fd int, err error)
	// MemImportFromShareableHandle does not close the descriptor.
	MemImportFromShareableHandle(fd int) (Memory, error)
	// MemRetainAllocationHandle returns the allocation that is mapped at p,
	// with a reference of its own.
	MemRetainAllocationHandle(p Pointer) (Memory, error)

	MemAlloc(ctx Context, size uint64) (Pointer, error)
	MemFree(Context, Pointer) error
	MemAllocManaged(ctx Context, size uint64) (Pointer, error)
	MemAllocAsync(ctx Context, size uint64, s Stream) (Pointer, error)
	MemFreeAsync(Context, Pointer, Stream) error
	DeviceGetDefaultMemPool(Device) (Pool, error)
	MemPoolTrimTo(p Pool, keep uint64) error
	// MemHostAlloc returns page-locked host memory; every context can use it.
	MemHostAlloc(ctx Context, size uint64) (uintptr, error)
	MemFreeHost(Context, uintptr) error

	// PointerGetAttributes describes the memory at an address: TypeUnknown
	// for host memory that the driver does not know.
	PointerGetAttributes(Pointer) (PointerInfo, error)
	// MemGetAddressRange returns the allocation that contains p.
	MemGetAddressRange(ctx Context, p Pointer) (base Pointer, size uint64, err error)

	// The copies return when they are submitted. Host memory must stay
	// valid until the stream has done them; copies of memory that is not
	// page-locked may return only then.
	MemcpyHtoDAsync(ctx Context, dst Pointer, src uintptr, size uint64, s Stream) error
	MemcpyDtoHAsync(ctx Context, dst uintptr, src Pointer, size uint64, s Stream) error
	MemcpyDtoDAsync(ctx Context, dst, src Pointer, size uint64, s Stream) error
	MemcpyPeerAsync(dst Pointer, dstCtx Context, src Pointer, srcCtx Context, size uint64, s Stream) error
	Memcpy2DAsync(Context, Copy2D, Stream) error
	MemsetD8Async(ctx Context, dst Pointer, value byte, n uint64, s Stream) error
	MemsetD32Async(ctx Context, dst Pointer, value uint32, n uint64, s Stream) error

	// ModuleLoadData compiles PTX text. log is what the compiler said, also
	// after an error.
	ModuleLoadData(ctx Context, ptx string) (m Module, log string, err error)
	ModuleUnload(Context, Module) error
	ModuleGetFunction(ctx Context, m Module, name string) (Function, error)
	FuncGetAttribute(FunctionAttribute, Function) (int, error)
	// LaunchKernel starts a kernel. args has the bytes of each parameter.
	LaunchKernel(ctx Context, f Function, grid, block Dim3, shared uint32, s Stream, args [][]byte) error

	StreamBeginCapture(Context, Stream) error
	StreamEndCapture(Context, Stream) (Graph, error)
	GraphInstantiate(Context, Graph) (Exec, error)
	GraphLaunch(Context, Exec, Stream) error
	GraphExecDestroy(Context, Exec) error
	GraphDestroy(Context, Graph) error

	// The older interface of sharing, for memory of MemAlloc. A handle is of
	// the whole allocation that contains p, and opens at its base, in other
	// processes only. Memory that is freed while another process has it open
	// is undefined.
	IpcGetMemHandle(ctx Context, p Pointer) (IPCHandle, error)
	IpcOpenMemHandle(ctx Context, h IPCHandle) (Pointer, error)
	IpcCloseMemHandle(Context, Pointer) error
	IpcGetEventHandle(ctx Context, e Event) (IPCHandle, error)
	IpcOpenEventHandle(ctx Context, h IPCHandle) (Event, error)
}

// IPCHandle is CUipcMemHandle or CUipcEventHandle.
type IPCHandle [64]byte

// Dim3 is the size of a grid or of a block.
type Dim3 struct{ X, Y, Z uint32 }

// Copy2D describes a copy of rows. Exactly one of the pointers of each side is
// set.
type Copy2D struct {
	Dst      Pointer
	DstHost  uintptr
	DstPitch uint64
	Src      Pointer
	SrcHost  uintptr
	SrcPitch uint64
	Width    uint64 // bytes of a row
	Height   uint64 // rows
}

// StreamFlags are the flags of StreamCreate.
type StreamFlags uint32

// The flags of streams.
const (
	StreamDefault     StreamFlags = 0 // waits for the legacy default stream, and it for this one
	StreamNonBlocking StreamFlags = 1
)

// EventFlags are the flags of EventCreate.
type EventFlags uint32

// The flags of events.
const (
	EventDefault       EventFlags = 0
	EventBlockingSync  EventFlags = 1 // EventSynchronize sleeps
	EventDisableTiming EventFlags = 2
	EventInterprocess  EventFlags = 4 // requires EventDisableTiming
)

// Attribute is CUdevice_attribute.
type Attribute int32

// The attributes that package cuda reads.
const (
	MaxThreadsPerBlock                 Attribute = 1
	MaxSharedMemoryPerBlock            Attribute = 8
	MultiprocessorCount                Attribute = 16
	Integrated                         Attribute = 18
	CanMapHostMemory                   Attribute = 19
	PCIBusID                           Attribute = 33
	PCIDeviceID                        Attribute = 34
	UnifiedAddressing                  Attribute = 41
	PCIDomainID                        Attribute = 50
	ComputeCapabilityMajor             Attribute = 75
	ComputeCapabilityMinor             Attribute = 76
	ManagedMemory                      Attribute = 83
	VirtualMemoryManagementSupported   Attribute = 102
	HandleTypePOSIXDescriptorSupported Attribute = 103
	MemoryPoolsSupported               Attribute = 115
	IPCEventSupported                  Attribute = 125
)

// AllocationProp is the part of CUmemAllocationProp that package cuda sets:
// memory of a device, pinned there.
type AllocationProp struct {
	Device     Device
	Exportable bool // as a POSIX descriptor
}

// GranularityOption is CUmemAllocationGranularity_flags.
type GranularityOption uint32

// The options.
const (
	GranularityMinimum     GranularityOption = 0
	GranularityRecommended GranularityOption = 1
)

// Access is CUmemAccess_flags.
type Access uint32

// The access rights.
const (
	AccessNone      Access = 0
	AccessRead      Access = 1
	AccessReadWrite Access = 3
)

// PointerInfo is the answer of PointerGetAttributes.
type PointerInfo struct {
	Type    MemoryType
	Context Context
	Ordinal int
	Managed bool
	IPC     bool // IpcGetMemHandle shares it: memory of MemAlloc
}

// MemoryType is CUmemorytype.
type MemoryType uint32

// The types of memory.
const (
	TypeUnknown MemoryType = 0
	TypeHost    MemoryType = 1 // page-locked
	TypeDevice  MemoryType = 2
	TypeUnified MemoryType = 4
)

// FunctionAttribute is CUfunction_attribute.
type FunctionAttribute int32

// The attributes of functions.
const (
	FuncMaxThreadsPerBlock FunctionAttribute = 0
	FuncSharedBytes        FunctionAttribute = 1
	FuncLocalBytes         FunctionAttribute = 3
	FuncRegisters          FunctionAttribute = 4
)
