package dlpack

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Request is a consumer's request to a producer: the arguments of __dlpack__ in
// the array API standard. The zero value is the request of consumers of DLPack
// before 1.0.
type Request struct {
	MaxVersion *Version // the newest version that the consumer supports; nil means only the legacy struct
	Copy       CopyRule
	Device     *Device // the device on which the consumer wants the bytes; nil means where they are
	Stream     *Stream // the consumer's stream, for a tensor on a device; nil means the default stream
	Writable   bool    // the producer's choice: export for writing
}

// CopyRule selects whether an exchange copies.
type CopyRule uint8

// The rules.
const (
	CopyIfNeeded CopyRule = iota
	CopyAlways
	CopyNever
)

// Answer is one of the two structs.
type Answer struct {
	Versioned *DLManagedTensorVersioned
	Legacy    *DLManagedTensor
}

// Delete calls the deleter of the struct, which must be one of this package's.
func (a Answer) Delete() {
	if a.Versioned != nil {
		a.Versioned.Delete(nil)
	}
	if a.Legacy != nil {
		a.Legacy.Delete(nil)
	}
}

// Export exports t as requested. A consumer that does not support the versioned
// struct gets the legacy one and, because that cannot mark memory as read-only,
// a copy unless the request is for writing.
//
// A tensor on a device is copied for a consumer that wants it in host memory,
// which waits for the copy.
func (r Request) Export(t *tensor.Tensor) (Answer, error) {
	x := exporting{}
	old := r.MaxVersion == nil || r.MaxVersion.Major < MajorVersion
	copies := r.Copy == CopyAlways || old && !r.Writable
	if r.Stream != nil || r.Device != nil {
		place, err := DeviceOf(t)
		if err != nil {
			return Answer{}, err
		}
		if x, err = r.place(place, copies); err != nil {
			return Answer{}, fmt.Errorf("dlpack export: %w", err)
		}
		if d := r.Device; d != nil && d.Type == CPU && place.plain().Type != CPU {
			c, err := tensor.To(context.Background(), t, nil)
			return x.answerCopied(old, c, err)
		}
	}
	switch {
	case old && r.Copy == CopyNever && !r.Writable:
		return Answer{}, fmt.Errorf("dlpack export: got a consumer of before DLPack 1.0 that takes no copy, want one that knows read-only: %w", tensor.ErrUnsupported)
	case copies:
		c, err := t.Copy(memory.Exports)
		return x.answerCopied(old, c, err)
	}
	return x.answer(old, r.Writable, t)
}

// place checks stream and device of the request for a tensor at that place.
func (r Request) place(place Device, copies bool) (x exporting, err error) {
	if r.Stream != nil {
		x.to = *r.Stream
		if err := x.to.Check(place.Type); err != nil {
			return x, err
		}
	}
	d := r.Device
	switch {
	case d == nil:
	case *d == place:
		if copies && place != place.plain() {
			return x, fmt.Errorf("got a consumer that takes a copy on %s %d, want it on %s: %w", d.Type, d.ID, place.plain().Type, tensor.ErrUnsupported)
		}
	case *d == place.plain():
		x.plain = true
	case *d != Device{Type: CPU}:
		return x, fmt.Errorf("got device %s %d, want %s: %w", d.Type, d.ID, wanted(place), tensor.ErrUnsupported)
	case r.Copy == CopyNever:
		return x, fmt.Errorf("got a consumer in host memory that takes no copy, want it on %s %d: %w", place.Type, place.ID, tensor.ErrUnsupported)
	}
	return x, nil
}

// wanted says which devices a consumer may ask for.
func wanted(place Device) string {
	text := fmt.Sprintf("%s %d", place.Type, place.ID)
	if plain := place.plain(); plain != place {
		text += fmt.Sprintf(", %s %d", plain.Type, plain.ID)
	}
	if place.plain().Type != CPU {
		text += " or cpu 0"
	}
	return text
}

// answer exports t in place; an old consumer gets the legacy struct, for
// writing.
func (x exporting) answer(old, write bool, t *tensor.Tensor) (a Answer, err error) {
	switch {
	case old:
		a.Legacy, err = x.legacy(t)
	case write:
		a.Versioned, err = x.writable(t)
	case x.plain:
		a.Versioned, err = x.readOnly(t)
	default:
		a.Versioned, err = export(t, x.to)
	}
	return a, err
}

func (x exporting) answerCopied(old bool, c *tensor.Tensor, err error) (a Answer, _ error) {
	if old {
		a.Legacy, err = x.copiedLegacy(c, err)
	} else {
		a.Versioned, err = x.copied(c, err)
	}
	return a, err
}
