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

// Error is a failed call.
type Error struct {
	Call   string // the name of the C function
	Result Result
	Symbol string // of the result, such as CUDA_ERROR_OUT_OF_MEMORY
	Text   string // the driver's description
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
	return &Error{Call: call, Result: r, Symbol: t.symbol, Text: t.text}
}

// Error says call, name and text.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Symbol, uint32(e.Result), e.Text)
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
