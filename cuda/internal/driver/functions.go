//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

// function is a C function of the driver: an index of functions and of
// library.at.
type function uint8

const (
	cuInit function = iota
	cuGetErrorName
	cuGetErrorString
	cuDriverGetVersion
	cuDeviceGetCount
	cuDeviceGet
	cuDeviceGetName
	cuDeviceGetUuid
	cuDeviceTotalMem
	cuDeviceGetAttribute
	cuDeviceCanAccessPeer
	cuDevicePrimaryCtxRetain
	cuDevicePrimaryCtxRelease
	cuCtxGetCurrent
	cuCtxSetCurrent
	cuCtxPushCurrent
	cuCtxPopCurrent
	cuCtxSynchronize
	cuCtxEnablePeerAccess
	cuCtxRecordEvent
	cuMemGetInfo
	cuStreamCreateWithPriority
	cuStreamDestroy
	cuStreamSynchronize
	cuStreamQuery
	cuStreamWaitEvent
	cuLaunchHostFunc
	cuEventCreate
	cuEventDestroy
	cuEventRecord
	cuEventQuery
	cuEventSynchronize
	cuEventElapsedTime
	cuMemGetAllocationGranularity
	cuMemAddressReserve
	cuMemAddressFree
	cuMemCreate
	cuMemRelease
	cuMemMap
	cuMemUnmap
	cuMemSetAccess
	cuMemExportToShareableHandle
	cuMemImportFromShareableHandle
	cuMemRetainAllocationHandle
	cuMemAlloc
	cuMemFree
	cuMemAllocManaged
	cuMemAllocAsync
	cuMemFreeAsync
	cuDeviceGetDefaultMemPool
	cuMemPoolTrimTo
	cuMemHostAlloc
	cuMemFreeHost
	cuPointerGetAttributes
	cuMemGetAddressRange
	cuMemcpyHtoDAsync
	cuMemcpyDtoHAsync
	cuMemcpyDtoDAsync
	cuMemcpyPeerAsync
	cuMemcpy2DAsync
	cuMemsetD8Async
	cuMemsetD32Async
	cuModuleLoadDataEx
	cuModuleUnload
	cuModuleGetFunction
	cuFuncGetAttribute
	cuLaunchKernel
	cuStreamBeginCapture
	cuStreamEndCapture
	cuGraphInstantiateWithFlags
	cuGraphLaunch
	cuGraphExecDestroy
	cuGraphDestroy
	cuIpcGetMemHandle
	cuIpcOpenMemHandle
	cuIpcCloseMemHandle
	cuIpcGetEventHandle
	cuIpcOpenEventHandle
	functionCount
)

// functions has the name of each function, for cuGetProcAddress and errors,
// and the version of CUDA in which it got the parameters that this package
// passes, as cudaTypedefs.h says: cuMemAlloc of 2.0 takes 32 bits, that of 3.2
// takes 64. A newer version would be refused by older drivers, and could one
// day name a function with other parameters, as cuCtxCreate of 13.0 has.
//
// Without an optional function a driver still serves a part of package cuda,
// which falls back or reports ErrNotFound. Drivers of virtual machines and
// other vendors lack some.
var functions = [functionCount]struct {
	name     string
	version  int
	optional bool
}{
	cuInit:                         {"cuInit", 2000, false},
	cuGetErrorName:                 {"cuGetErrorName", 6000, false},
	cuGetErrorString:               {"cuGetErrorString", 6000, false},
	cuDriverGetVersion:             {"cuDriverGetVersion", 2020, false},
	cuDeviceGetCount:               {"cuDeviceGetCount", 2000, false},
	cuDeviceGet:                    {"cuDeviceGet", 2000, false},
	cuDeviceGetName:                {"cuDeviceGetName", 2000, false},
	cuDeviceGetUuid:                {"cuDeviceGetUuid", 11040, false}, // that of 9.2 does not tell instances of a GPU apart
	cuDeviceTotalMem:               {"cuDeviceTotalMem", 3020, false},
	cuDeviceGetAttribute:           {"cuDeviceGetAttribute", 2000, false},
	cuDeviceCanAccessPeer:          {"cuDeviceCanAccessPeer", 4000, false},
	cuDevicePrimaryCtxRetain:       {"cuDevicePrimaryCtxRetain", 7000, false},
	cuDevicePrimaryCtxRelease:      {"cuDevicePrimaryCtxRelease", 11000, false},
	cuCtxGetCurrent:                {"cuCtxGetCurrent", 4000, false},
	cuCtxSetCurrent:                {"cuCtxSetCurrent", 4000, false},
	cuCtxPushCurrent:               {"cuCtxPushCurrent", 4000, false},
	cuCtxPopCurrent:                {"cuCtxPopCurrent", 4000, false},
	cuCtxSynchronize:               {"cuCtxSynchronize", 2000, false},
	cuCtxEnablePeerAccess:          {"cuCtxEnablePeerAccess", 4000, false},
	cuCtxRecordEvent:               {"cuCtxRecordEvent", 12050, true},
	cuMemGetInfo:                   {"cuMemGetInfo", 3020, false},
	cuStreamCreateWithPriority:     {"cuStreamCreateWithPriority", 5050, false},
	cuStreamDestroy:                {"cuStreamDestroy", 4000, false},
	cuStreamSynchronize:            {"cuStreamSynchronize", 2000, false},
	cuStreamQuery:                  {"cuStreamQuery", 2000, false},
	cuStreamWaitEvent:              {"cuStreamWaitEvent", 3020, false},
	cuLaunchHostFunc:               {"cuLaunchHostFunc", 10000, true},
	cuEventCreate:                  {"cuEventCreate", 2000, false},
	cuEventDestroy:                 {"cuEventDestroy", 4000, false},
	cuEventRecord:                  {"cuEventRecord", 2000, false},
	cuEventQuery:                   {"cuEventQuery", 2000, false},
	cuEventSynchronize:             {"cuEventSynchronize", 2000, false},
	cuEventElapsedTime:             {"cuEventElapsedTime", 2000, false},
	cuMemGetAllocationGranularity:  {"cuMemGetAllocationGranularity", 10020, true},
	cuMemAddressReserve:            {"cuMemAddressReserve", 10020, true},
	cuMemAddressFree:               {"cuMemAddressFree", 10020, true},
	cuMemCreate:                    {"cuMemCreate", 10020, true},
	cuMemRelease:                   {"cuMemRelease", 10020, true},
	cuMemMap:                       {"cuMemMap", 10020, true},
	cuMemUnmap:                     {"cuMemUnmap", 10020, true},
	cuMemSetAccess:                 {"cuMemSetAccess", 10020, true},
	cuMemExportToShareableHandle:   {"cuMemExportToShareableHandle", 10020, true},
	cuMemImportFromShareableHandle: {"cuMemImportFromShareableHandle", 10020, true},
	cuMemRetainAllocationHandle:    {"cuMemRetainAllocationHandle", 11000, true},
	cuMemAlloc:                     {"cuMemAlloc", 3020, false},
	cuMemFree:                      {"cuMemFree", 3020, false},
	cuMemAllocManaged:              {"cuMemAllocManaged", 6000, true},
	cuMemAllocAsync:                {"cuMemAllocAsync", 11020, true},
	cuMemFreeAsync:                 {"cuMemFreeAsync", 11020, true},
	cuDeviceGetDefaultMemPool:      {"cuDeviceGetDefaultMemPool", 11020, true},
	cuMemPoolTrimTo:                {"cuMemPoolTrimTo", 11020, true},
	cuMemHostAlloc:                 {"cuMemHostAlloc", 2020, false},
	cuMemFreeHost:                  {"cuMemFreeHost", 2000, false},
	cuPointerGetAttributes:         {"cuPointerGetAttributes", 7000, false},
	cuMemGetAddressRange:           {"cuMemGetAddressRange", 3020, false},
	cuMemcpyHtoDAsync:              {"cuMemcpyHtoDAsync", 3020, false},
	cuMemcpyDtoHAsync:              {"cuMemcpyDtoHAsync", 3020, false},
	cuMemcpyDtoDAsync:              {"cuMemcpyDtoDAsync", 3020, false},
	cuMemcpyPeerAsync:              {"cuMemcpyPeerAsync", 4000, false},
	cuMemcpy2DAsync:                {"cuMemcpy2DAsync", 3020, false},
	cuMemsetD8Async:                {"cuMemsetD8Async", 3020, false},
	cuMemsetD32Async:               {"cuMemsetD32Async", 3020, false},
	cuModuleLoadDataEx:             {"cuModuleLoadDataEx", 2010, false},
	cuModuleUnload:                 {"cuModuleUnload", 2000, false},
	cuModuleGetFunction:            {"cuModuleGetFunction", 2000, false},
	cuFuncGetAttribute:             {"cuFuncGetAttribute", 2020, false},
	cuLaunchKernel:                 {"cuLaunchKernel", 4000, false},
	cuStreamBeginCapture:           {"cuStreamBeginCapture", 10010, true},
	cuStreamEndCapture:             {"cuStreamEndCapture", 10000, true},
	cuGraphInstantiateWithFlags:    {"cuGraphInstantiateWithFlags", 11040, true},
	cuGraphLaunch:                  {"cuGraphLaunch", 10000, true},
	cuGraphExecDestroy:             {"cuGraphExecDestroy", 10000, true},
	cuGraphDestroy:                 {"cuGraphDestroy", 10000, true},
	cuIpcGetMemHandle:              {"cuIpcGetMemHandle", 4010, true},
	cuIpcOpenMemHandle:             {"cuIpcOpenMemHandle", 11000, true},
	cuIpcCloseMemHandle:            {"cuIpcCloseMemHandle", 4010, true},
	cuIpcGetEventHandle:            {"cuIpcGetEventHandle", 4010, true},
	cuIpcOpenEventHandle:           {"cuIpcOpenEventHandle", 4010, true},
}
