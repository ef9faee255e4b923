package tenure

import (
	"errors"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// The kinds of errors, for errors.Is. They are the values of the packages
// that make them.
var (
	ErrShape         = tensor.ErrShape                      // a shape or size that does not fit
	ErrDType         = tensor.ErrDType                      // an element type that does not fit
	ErrNoTensor      = tensor.ErrNoTensor                   // a nil or zero Tensor
	ErrLayout        = tensor.ErrLayout                     // elements that do not lie as needed: a copy does
	ErrNotReusable   = tensor.ErrNotReusable                // a donated tensor whose bytes cannot take a result
	ErrUnsupported   = op.ErrUnsupported                    // an operator, form or use that is not supported
	ErrDonated       = tensor.ErrDonated                    // a tensor that was given up
	ErrReleased      = tensor.ErrReleased                   // a tensor whose bytes went back
	ErrShared        = tensor.ErrShared                     // bytes that are not exclusive
	ErrWriting       = tensor.ErrWriting                    // a tensor that is locked for writing
	ErrLimit         = tensor.ErrLimit                      // more bytes than allowed
	ErrPartlyWritten = tensor.ErrPartlyWritten              // a call that failed after it had consumed an operand
	ErrCorrupt       = tensor.ErrCorrupt                    // a file that is damaged or of another format
	ErrClosed        = errors.New("closed")                 // a model, session or binding that was closed, or is nil
	ErrBusy          = errors.New("in use by another call") // a binding that a run uses

	// ErrInput is every fault in the inputs of a run or a plan: a name that the
	// model does not have, an input that is missing, and, beside ErrShape and
	// ErrDType, a shape or element type that does not fit. A server answers it
	// as its client's mistake.
	ErrInput = errors.New("does not fit the model")
)

// inputError is an error of another kind that is ErrInput as well.
type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error        { return e.error }
