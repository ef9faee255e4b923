package driver

import (
	"errors"
	"fmt"
)

// Result is CUresult: 0 is success.
type Result uint32

// The results that package cuda distinguishes.
const (
	Success              Result = 0
	InvalidValue         Result = 1
	OutOfMemory          Result = 2
	NotInitialized       Result = 3
	Deinitialized        Result = 4
	NoDevice             Result = 100
	InvalidDevice        Result = 101
	InvalidImage         Result = 200
	InvalidContext       Result = 201
	UnsupportedLimit     Result = 215
	PeerAccessUnsupp     Result = 217
	InvalidPTX           Result = 218
	UnsupportedPTX       Result = 222
	OperatingSystem      Result = 304
	InvalidHandle        Result = 400
	NotFound             Result = 500
	NotReady             Result = 600
	IllegalAddress       Result = 700
	LaunchOutOfResources Result = 701
	LaunchTimeout        Result = 702
	PeerAlreadyEnabled   Result = 704
	MisalignedAddress    Result = 716
	LaunchFailed         Result = 719
	NotPermitted         Result = 800
	NotSupported         Result = 801
	SystemNotReady       Result = 802
	SystemDriverMismatch Result = 803
	DeviceUnavailable    Result = 46
	Unknown              Result = 999
)

// stubLibrary is the result of every function of the library that the toolkit
// has for linking.
const stubLibrary Result = 34

// Error is a failed call.
type Error struct {
	Call   string // the name of the C function
	Result Result
	Symbol string // of the result, such as CUDA_ERROR_OUT_OF_MEMORY
	Text   string // the driver's description
	Hint   string // what to do about it, where that is known
}

// Fail returns the error of a call that returned r, nil if r is Success. Name
// and text come from a table, not from a driver: implementations without a
// driver use it too.
func Fail(call string, r Result) error {
	if r == Success {
		return nil
	}
	t, known := texts[r]
	if !known {
		t.symbol, t.text = "unknown result", "this result is not documented"
	}
	return &Error{Call: call, Result: r, Symbol: t.symbol, Text: t.text, Hint: hints[r]}
}

// hints has what to do about failures of a machine or its configuration, which
// the driver's descriptions do not tell.
var hints = map[Result]string{
	stubLibrary:          "the library is the toolkit's, for linking only; want that of NVIDIA's driver",
	DeviceUnavailable:    "another process may use it in exclusive mode (nvidia-smi -q -d COMPUTE), or it is in a failed state (dmesg)",
	NoDevice:             "no GPU is in this machine, or none is visible (CUDA_VISIBLE_DEVICES, the container's --gpus, /dev/nvidia*)",
	UnsupportedPTX:       "the driver is older than the PTX text",
	SystemNotReady:       "a service of the machine is not up: with NVSwitch that is nvidia-fabricmanager",
	SystemDriverMismatch: "the library and the kernel module are of different versions: reload the module or reboot after an update, and in a container use the host's library",
	804:                  "a library for forward compatibility is in use, which needs a data-centre GPU: use the driver's own library",
}

// Error says call, name, text and hint, in one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Symbol, uint32(e.Result), e.Text)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Is makes errors.Is(err, driver.OutOfMemory) test the result.
func (e *Error) Is(target error) bool {
	r, ok := target.(Result)
	return ok && r == e.Result
}

// Error makes a Result a target of errors.Is.
func (r Result) Error() string { return fmt.Sprintf("CUDA result %d", uint32(r)) }

// ErrNotFound: this driver lacks the function.
var ErrNotFound = errors.New("the driver does not have this function")
