package tensor

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// The kinds of error of the whole module. Test for them with errors.Is.
var (
	ErrShape    = shape.ErrShape     // a shape, size or place does not fit
	ErrDType    = dtype.ErrDType     // an element type does not fit
	ErrLimit    = memory.ErrLimit    // no memory left under the limit, or none left at all
	ErrReleased = memory.ErrReleased // the tensor was released
	ErrDonated  = memory.ErrDonated  // the tensor was given up to an operation
	ErrShared   = memory.ErrShared   // the bytes may not be written: they are held or used by others, or are not ours
	ErrWriting  = memory.ErrWriting  // a writer has the tensor

	ErrPartlyWritten = errors.New("failed after the first write") // donated and reused operands are dead
	ErrUnsupported   = dtype.ErrUnsupported                       // legal, but not supported
	ErrCorrupt       = errors.New("corrupt data")
	// ErrNoTensor: a nil *Tensor, such as a map has for a name that it does not know, or a zero Tensor.
	ErrNoTensor = errors.New("no tensor")
	// ErrLayout: the elements do not lie as needed: with gaps, in another order, two in one byte, or at an unaligned address.
	// A copy does.
	ErrLayout = errors.New("layout does not fit")
	// ErrNotReusable: a tensor was given up to an operation that cannot put a result in its bytes. Reuse lets the operation
	// take other bytes.
	ErrNotReusable = errors.New("bytes cannot be reused")
)

// errLost is the error of a use of a buffer that nobody holds: somebody gave up the hold of a tensor that is alive.
var errLost = fmt.Errorf("buffer: %w", ErrReleased)

// refusal words the error with which a handle refused op.
func (t *Tensor) refusal(op string, err error) error {
	switch {
	case err == errLost || errors.Is(err, ErrShared) && t.buf.Holders() == 0:
		return fmt.Errorf("%s: the bytes of %s are gone: their buffer was released by somebody who did not hold it: %w", op, t.describe(), ErrReleased)
	case errors.Is(err, ErrDonated) || errors.Is(err, ErrReleased):
		return t.deadError(op, err)
	case errors.Is(err, ErrWriting):
		if _, exports := t.h.Uses(); exports > 0 {
			return fmt.Errorf("%s: %s is %w: it is exported for writing", op, t.describe(), err)
		}
		return fmt.Errorf("%s: %s is %w", op, t.describe(), err)
	case errors.Is(err, ErrShared):
		return t.sharedError(op)
	}
	return fmt.Errorf("%s: %s: %w", op, t.describe(), err)
}

// deadError names the operation that a dead tensor was donated to. The record's word may already serve another handle; the
// tensor itself remembers, from before the word changed.
func (t *Tensor) deadError(op string, err error) error {
	f := t.fate.Load()
	switch {
	case f == nil && errors.Is(err, ErrDonated):
		return fmt.Errorf("%s: %s %w by a call that is just ending", op, t.describe(), ErrDonated)
	case f == nil:
		return fmt.Errorf("%s: %s %w", op, t.describe(), ErrReleased)
	}
	text := ""
	if at := f.site.String(); at != "" {
		text = " at\n" + at
	}
	return fmt.Errorf("%s: %s %w to %s%s", op, t.describe(), ErrDonated, f.name, text)
}

func (t *Tensor) sharedError(op string) error {
	if why := t.whyShared(); why != "" {
		return fmt.Errorf("%s: %s: %w: %s", op, t.describe(), ErrShared, why)
	}
	return fmt.Errorf("%s: %s: %w: held or used by others until just now", op, t.describe(), ErrShared)
}

// whyShared lists who else has the bytes, "" if nobody has.
func (t *Tensor) whyShared() string {
	flags, holders := t.buf.Flags(), t.buf.Holders()
	uses, exports := t.h.Uses()
	switch {
	case flags != 0:
		return "the bytes are " + flags.String()
	case holders > 1:
		return fmt.Sprintf("the buffer has %d holders%s", holders, t.otherHolders())
	case exports > 0:
		return counted(exports, "export")
	case uses > 0:
		return counted(uses, "use")
	}
	return ""
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is out"
	}
	return fmt.Sprintf("%d %ss are out", n, what)
}

// otherHolders lists the handles on the buffer with the places that made them, in builds that remember them.
func (t *Tensor) otherHolders() string {
	text := ""
	for _, h := range t.buf.Info().Handles {
		if h.Site != "" {
			text += fmt.Sprintf("\nholder with %d uses, made at\n%s", h.Uses, h.Site)
		}
	}
	return text
}

// describe is the tensor's type in text, which outlives it.
func (t *Tensor) describe() string { return t.dt.String() + t.layout.Shape().String() }
