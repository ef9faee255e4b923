package tensor

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/shape"
)

// claim is what an operation has of one operand between its begin and its end: a use or, where the bytes may be written, the
// lock.
type claim struct {
	t      *Tensor
	sem    CopySemantics
	held   bool
	locked bool
	kept   *Tensor // the result that takes over the bytes
}

// acquire takes the lock for a tensor that is given up, if it is exclusive, and a use otherwise. Only a strict donation
// fails for being shared.
func (c *claim) acquire(op string) error {
	if c.sem != AlwaysCopy {
		err := c.t.h.Lock()
		if err == nil {
			c.held, c.locked = true, true
			return nil
		}
		if c.sem == DonateInput || !errors.Is(err, ErrShared) {
			return c.t.refusal(op, err)
		}
	}
	return c.borrow(op)
}

// borrow takes a use whatever the semantics.
func (c *claim) borrow(op string) error {
	if err := c.t.use(); err != nil {
		return c.t.refusal(op, err)
	}
	c.held = true
	return nil
}

// view makes the tensor over the claimed one's bytes that to describes: one more holder.
func (c *claim) view(op string, to relayout) (*Tensor, error) {
	l, skip, err := to(op, c.t.layout)
	if err != nil {
		return nil, err
	}
	bits := skip * c.t.dt.Bits()
	if bits%8 != 0 {
		return nil, fmt.Errorf("%s: got a view that begins at element %d of %s, want one that begins at a whole byte: %w", op, skip, c.t.describe(), ErrUnsupported)
	}
	return c.hold(op, c.t.start+c.t.first+bits/8, c.t.dt, l)
}

// hold makes a tensor over the claimed one's buffer.
func (c *claim) hold(op string, offset int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	v, err := over(op, c.t.buf, offset, dt, l)
	if err != nil {
		return nil, err
	}
	if v.h, err = c.t.buf.NewHandle(); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return v, nil
}

// commit ends the claim and the tensor, if it was given up.
func (c *claim) commit(op string) {
	if c.sem != AlwaysCopy {
		// The reason comes first: once the handle is dead somebody may ask for it. It does no harm on a tensor that lives,
		// nor if another goroutine ends the tensor at this moment: a reused tensor that is listed twice ends here twice.
		c.t.fate.Store(&fate{op: op, site: invariant.Here(3)})
		_ = c.t.h.Donate()
	}
	c.end()
}

// rollback ends the claim and leaves the tensor as it was.
func (c *claim) rollback() {
	if c.kept != nil {
		_ = c.kept.h.Release() // nobody else knows it
		c.kept = nil
	}
	c.end()
}

func (c *claim) end() {
	switch {
	case c.locked:
		c.t.unlock()
	case c.held:
		c.t.endUse()
	}
	c.held, c.locked = false, false
}
