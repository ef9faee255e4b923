package tensor

import (
	"fmt"

	"github.com/tenure-go/tenure/memory"
)

// IsExclusive reports whether the bytes could be written now: the tensor is
// alive and unused, it is the buffer's only holder, and the buffer has no flag.
func (t *Tensor) IsExclusive() bool {
	if t == nil || t.buf == nil || t.h.Err() != nil || t.layout.Overlaps() {
		return false
	}
	uses, exports := t.h.Uses()
	return uses == 0 && exports == 0 && t.buf.IsExclusive()
}

// WhyNotWritable returns nil for an exclusive tensor, and otherwise the error
// that a strict donation or a write would return now.
func (t *Tensor) WhyNotWritable() error {
	const op = "write"
	if t == nil || t.buf == nil {
		return errNil(op, t)
	}
	if err := t.h.Err(); err != nil {
		return t.refusal(op, err)
	}
	if t.whyShared() != "" {
		return t.sharedError(op)
	}
	if t.layout.Overlaps() {
		return t.overlapError(op)
	}
	return nil
}

// Alive reports whether the tensor has not ended yet.
func (t *Tensor) Alive() bool {
	if t == nil || t.buf == nil {
		return false
	}
	err := t.h.Err()
	return err == nil || err == memory.ErrWriting
}

// IsDonatable reports whether a strict donation to an operation that can use
// the bytes would succeed now.
func (t *Tensor) IsDonatable() bool { return t.IsExclusive() && t.isPlace() }

// WhyNotDonatable returns nil for a donatable tensor, and otherwise the error
// of a strict donation to any operation. An operation may have further reasons:
// a result of another size, another order of elements.
func (t *Tensor) WhyNotDonatable() error {
	if err := t.WhyNotWritable(); err != nil {
		return err
	}
	return t.whyNoPlace("donate")
}

// TakeBuffer ends the tensor and returns its buffer, with the tensor's hold,
// and the byte at which element [0,...,0] begins. If the tensor is not
// exclusive, it fails with [ErrShared] and the tensor stays as it was.
func (t *Tensor) TakeBuffer() (buf *memory.Buffer, offset int, err error) {
	if t == nil || t.buf == nil {
		return nil, 0, errNil(takeBuffer.name, t)
	}
	c := claim{t: t, sem: DonateInput}
	if err := c.acquire(); err != nil {
		return nil, 0, t.refusal(takeBuffer.name, err)
	}
	if err := t.buf.Retain(); err != nil { // a temporary hold; only the maximal count could refuse it
		c.rollback()
		return nil, 0, fmt.Errorf("%s: %w", takeBuffer.name, err)
	}
	c.commit(takeBuffer)
	return t.buf, t.start + t.first, nil
}

var takeBuffer = NewOperation("take buffer")

// Hold returns the tensor's buffer, with another hold that the caller releases,
// and the byte at which element [0,...,0] begins. It lends bytes to code that
// does not use tensors; the tensor stays as it is. It fails with ErrWriting
// while the tensor is locked for writing.
func (t *Tensor) Hold() (buf *memory.Buffer, offset int, err error) {
	const op = "hold"
	if t == nil || t.buf == nil {
		return nil, 0, errNil(op, t)
	}
	if err := t.use(); err != nil {
		return nil, 0, t.refusal(op, err)
	}
	defer t.endUse()
	if err := t.buf.Retain(); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", op, err)
	}
	return t.buf, t.start + t.first, nil
}
