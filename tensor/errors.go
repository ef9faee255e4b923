package tensor

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// The errors of the whole module. Test for them with errors.Is.
var (
	ErrShape    = shape.ErrShape     // a shape, size or index does not fit
	ErrDType    = dtype.ErrDType     // an element type does not fit
	ErrLimit    = memory.ErrLimit    // no memory left under the limit, or none left at all
	ErrReleased = memory.ErrReleased // the tensor was released
	ErrDonated  = memory.ErrDonated  // the tensor was donated to an operation
	ErrShared   = memory.ErrShared   // the bytes may not be written: they have another holder or use, or another owner
	ErrWriting  = memory.ErrWriting  // the tensor is locked for writing
	ErrDevice   = memory.ErrDevice   // the bytes are in the memory of another device than the call needs; see To

	ErrPartlyWritten = errors.New("failed after the first write") // donated and reused operands are dead
	ErrUnsupported   = dtype.ErrUnsupported                       // legal, but not supported
	ErrCorrupt       = errors.New("corrupt data")
	// ErrNoTensor: a nil *Tensor, such as a map returns for an unknown name, or
	// a zero Tensor.
	ErrNoTensor = errors.New("no tensor")
	// ErrLayout: the layout does not fit: it has gaps, another order, two
	// elements in one byte, or an unaligned address. A copy fits.
	ErrLayout = errors.New("layout does not fit")
	// ErrNotReusable: a tensor was donated to an operation that cannot put a
	// result into its bytes. With Reuse the operation may use other bytes.
	ErrNotReusable = errors.New("bytes cannot be reused")
)

// errLost: the buffer of a live tensor has no holder, because the tensor's hold
// was released elsewhere.
var errLost = fmt.Errorf("buffer: %w", ErrReleased)

// refusal returns the error of op for a handle's error.
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
	case errors.Is(err, ErrDevice):
		return fmt.Errorf("%s: got %s on %s, want it in host memory (tensor.To copies it): %w", op, t.describe(), t.buf.Device(), ErrDevice)
	}
	return fmt.Errorf("%s: %s: %w", op, t.describe(), err)
}

// deadError names the operation that a dead tensor was donated to. The handle's
// record may already serve another handle, so the tensor itself stores the
// operation, before the record changes.
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

// whyShared lists the other holders and uses of the bytes, "" if there are
// none.
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

// otherHolders lists the other handles on the buffer with their allocation
// sites, in builds that record them.
func (t *Tensor) otherHolders() string {
	text := ""
	for _, h := range t.buf.Info().Handles {
		if h.Site != "" {
			text += fmt.Sprintf("\nholder with %d uses, made at\n%s", h.Uses, h.Site)
		}
	}
	return text
}

// describe returns the tensor's type as text, which stays valid after the
// tensor's end.
func (t *Tensor) describe() string { return t.dt.String() + t.layout.Shape().String() }
