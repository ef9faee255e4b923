//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package main

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/dtype"
)

// The places of functions in OrtApi, a table that only grows.
const (
	getErrorMessage      = 2
	createEnv            = 3
	createSession        = 7
	run                  = 9
	createSessionOptions = 10
	createTensorWithData = 49
	createCPUMemoryInfo  = 69
	releaseEnv           = 92
	releaseStatus        = 93
	releaseMemoryInfo    = 94
	releaseSession       = 95
	releaseValue         = 96
	releaseOptions       = 100
	functions            = 101

	apiVersion = 1 // the first version has all functions that are called here
)

// runtime is ONNX Runtime, with one model.
type runtime struct {
	api                        []uintptr
	env, options, session, cpu uintptr
}

// pointer turns an address that came from C into a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func cString(s string) *byte { return &append([]byte(s), 0)[0] }

func open(library, model string) (*runtime, error) {
	lib, err := capi.Open(library)
	if err != nil {
		return nil, err
	}
	base, err := lib.Symbol("OrtGetApiBase")
	if err != nil {
		return nil, err
	}
	getAPI := *(*uintptr)(pointer(capi.CallN(base))) // the first field of OrtApiBase
	table := capi.CallN(getAPI, apiVersion)
	if table == 0 {
		return nil, errors.New("onnxruntime: got no functions")
	}
	r := &runtime{api: unsafe.Slice((*uintptr)(pointer(table)), functions)}
	path, name := cString(model), cString("tenure")
	const warnings = 2
	err = errors.Join(
		r.status(capi.CallN(r.api[createEnv], warnings, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&r.env)))),
		r.status(capi.CallN(r.api[createSessionOptions], uintptr(unsafe.Pointer(&r.options)))),
		r.status(capi.CallN(r.api[createCPUMemoryInfo], 0, 0, uintptr(unsafe.Pointer(&r.cpu)))),
	)
	if err == nil {
		err = r.status(capi.CallN(r.api[createSession], r.env, uintptr(unsafe.Pointer(path)), r.options, uintptr(unsafe.Pointer(&r.session))))
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *runtime) close() {
	for _, f := range []struct {
		release int
		object  uintptr
	}{{releaseSession, r.session}, {releaseMemoryInfo, r.cpu}, {releaseOptions, r.options}, {releaseEnv, r.env}} {
		if f.object != 0 {
			capi.CallN(r.api[f.release], f.object)
		}
	}
}

// status makes an error of an OrtStatus.
func (r *runtime) status(s uintptr) error {
	if s == 0 {
		return nil
	}
	text := (*byte)(pointer(capi.CallN(r.api[getErrorMessage], s)))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(text), n)) != 0 {
		n++
	}
	err := fmt.Errorf("onnxruntime: %s", unsafe.Slice(text, n))
	capi.CallN(r.api[releaseStatus], s)
	return err
}

// value shows the bytes of a DLTensor to ONNX Runtime. They stay where they
// are, and whose they are.
func (r *runtime) value(d dlpack.DLTensor) (uintptr, error) {
	dt, err := dtype.FromDLPack(uint8(d.DType.Code), d.DType.Bits, d.DType.Lanes)
	if err != nil {
		return 0, err
	}
	elements := 1
	for _, n := range unsafe.Slice((*int64)(pointer(d.Shape)), d.NDim) {
		elements *= int(n)
	}
	bytes, err := dt.ByteLen(elements)
	if err != nil {
		return 0, err
	}
	var v uintptr
	err = r.status(capi.CallN(r.api[createTensorWithData], r.cpu, d.Data, uintptr(bytes), d.Shape, uintptr(d.NDim), uintptr(dt.ONNX()), uintptr(unsafe.Pointer(&v))))
	return v, err
}

// run computes the model's output from its input, in bytes that both are lent.
func (r *runtime) run(inName string, in dlpack.DLTensor, outName string, out dlpack.DLTensor) error {
	from, err := r.value(in)
	if err != nil {
		return err
	}
	defer capi.CallN(r.api[releaseValue], from)
	to, err := r.value(out)
	if err != nil {
		return err
	}
	defer capi.CallN(r.api[releaseValue], to)
	ins, outs := []*byte{cString(inName)}, []*byte{cString(outName)}
	return r.status(capi.CallN(r.api[run], r.session, 0,
		uintptr(unsafe.Pointer(&ins[0])), uintptr(unsafe.Pointer(&from)), 1,
		uintptr(unsafe.Pointer(&outs[0])), 1, uintptr(unsafe.Pointer(&to))))
}
