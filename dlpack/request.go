package dlpack

import (
	"fmt"

	"github.com/tenure-go/tenure/tensor"
)

// Request is a consumer's request to a producer: the arguments of __dlpack__ in
// the array API standard. The zero value is the request of consumers of DLPack
// before 1.0.
type Request struct {
	MaxVersion *Version // the newest version that the consumer supports; nil means only the legacy struct
	Copy       CopyRule
	Device     *Device // the device on which the consumer wants the bytes; nil means where they are
	Stream     bool    // a stream was specified, which has no meaning for host memory
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
func (r Request) Export(t *tensor.Tensor) (Answer, error) {
	if r.Stream {
		return Answer{}, fmt.Errorf("dlpack export: got a stream, want none for host memory: %w", tensor.ErrUnsupported)
	}
	if d := r.Device; d != nil && *d != (Device{CPU, 0}) {
		return Answer{}, fmt.Errorf("dlpack export: got device %s %d, want cpu 0: %w", d.Type, d.ID, tensor.ErrUnsupported)
	}
	var a Answer
	var err error
	switch old := r.MaxVersion == nil || r.MaxVersion.Major < MajorVersion; {
	case old && r.Copy == CopyNever && !r.Writable:
		return a, fmt.Errorf("dlpack export: got a consumer of before DLPack 1.0 that takes no copy, want one that knows read-only: %w", tensor.ErrUnsupported)
	case old && (r.Copy == CopyAlways || !r.Writable):
		a.Legacy, err = ExportLegacyCopy(t)
	case old:
		a.Legacy, err = ExportLegacy(t)
	case r.Copy == CopyAlways:
		a.Versioned, err = ExportCopy(t)
	case r.Writable:
		a.Versioned, err = ExportWritable(t)
	default:
		a.Versioned, err = Export(t)
	}
	return a, err
}
