// Package grpc has the parts of gRPC's wire format that lie above HTTP/2:
// codes, the texts of errors, times, and the frames of messages.
//
//	f := grpc.NewFrames(request.Body, request.Header.Get("Grpc-Encoding"))
//	n, err := f.Next(most)         // the bytes of the next message; -1 if it is compressed
//	_, err = io.ReadFull(f, dst)   // some of them
//
// HTTP/2 itself is that of net/http.
//
// # Memory and concurrency
//
// [Frames] reads into the bytes of its caller, and keeps none but those of a
// decompressor. It belongs to one goroutine at a time.
package grpc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Code is a status of gRPC.
type Code int

// The codes of gRPC.
const (
	OK                 Code = 0
	Canceled           Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16
)

// Error is an error with a code.
type Error struct {
	Code Code
	Text string
}

// Error returns the text, without the code.
func (e *Error) Error() string { return e.Text }

// Errorf makes an error with a code.
func Errorf(code Code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// EscapeText writes the text of an error for a header: what is not printable
// ASCII, and the percent sign, in hexadecimal digits.
func EscapeText(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Timeout reads the header Grpc-Timeout. Times beyond those of a time.Duration
// become the longest one.
func Timeout(value string) (time.Duration, error) {
	units := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond}
	last := max(0, len(value)-1)
	n, err := strconv.ParseUint(value[:last], 10, 64)
	if err != nil || len(value) > 9 || units[value[last]] == 0 {
		return 0, Errorf(InvalidArgument, "grpc-timeout: got %q, want up to eight digits and a unit", value)
	}
	unit := units[value[last]]
	if n > uint64(math.MaxInt64/unit) {
		return math.MaxInt64, nil
	}
	return time.Duration(n) * unit, nil
}
