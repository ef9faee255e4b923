package tensor

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// claim is an operation's right to one operand from its begin to its end: a use
// or, if the bytes may be written, the lock.
type claim struct {
	t      *Tensor
	sem    CopySemantics
	held   bool
	locked bool
	kept   *Tensor // the result that takes over the bytes: t itself if it stays
	spared bool    // a failure leaves the tensor alive
}

// acquire takes the lock for an exclusive tensor that is given up, and a use
// otherwise. Only a strict donation fails because the tensor is shared.
func (c *claim) acquire() error {
	if c.sem != Borrow {
		err := c.t.h.Lock()
		if err == nil {
			c.held, c.locked = true, true
			return nil
		}
		if c.sem == DonateInput || !errors.Is(err, ErrShared) {
			return err
		}
	}
	return c.borrow()
}

// borrow takes a use, regardless of the semantics.
func (c *claim) borrow() error {
	err := c.t.use()
	c.held = err == nil
	return err
}

// view makes the tensor that to describes over the bytes of the claimed one.
func (c *claim) view(op string, to relayout) error {
	l, skip, err := to(op, c.t.layout)
	if err != nil {
		return err
	}
	bits := skip * c.t.dt.Bits()
	if bits%8 != 0 {
		return fmt.Errorf("%s: got a view that begins at element %d of %s, want one that begins at a whole byte: %w", op, skip, c.t.describe(), ErrLayout)
	}
	return c.hold(op, c.t.start+c.t.first+bits/8, c.t.dt, l)
}

// hold makes a tensor over the claimed one's buffer. If the claimed one is
// locked, the new tensor gets its hold at the commit, otherwise a hold of its
// own.
func (c *claim) hold(op string, offset int, dt dtype.DType, l *shape.Layout) error {
	v, err := over(op, c.t.buf, offset, dt, l)
	if err != nil {
		return err
	}
	if !c.moves() {
		if v.h, err = c.t.buf.NewHandle(); err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
	}
	c.kept = v
	return nil
}

// moves reports whether a result gets the handle of the claimed tensor, with a
// new generation.
func (c *claim) moves() bool { return c.locked && !c.t.h.Spent() }

// commit ends the claim, and the tensor if it was given up.
func (c *claim) commit(op *Operation) {
	if c.sem == Borrow || c.kept == c.t {
		c.end()
		return
	}
	// The reason is set first, because other goroutines may ask for it once the
	// handle is dead. It does no harm on a live tensor, nor if another
	// goroutine ends the tensor at the same time: a reused tensor that is
	// listed twice ends here twice.
	c.t.fate.Store(op.here(4))
	if c.kept != nil && c.moves() {
		c.kept.h = c.t.h.Move()
		c.held, c.locked = false, false
		runtime.KeepAlive(c.t)
		return
	}
	_ = c.t.h.Donate()
	c.end()
}

// fail ends the claim and the result, and the tensor if it was given up and not
// spared.
func (c *claim) fail(op *Operation) {
	c.drop()
	if c.spared {
		c.end()
		return
	}
	c.commit(op)
}

// rollback ends the claim and leaves the tensor as it was.
func (c *claim) rollback() {
	c.drop()
	c.end()
}

// drop releases the result, which no other goroutine knows and which may not
// have a handle yet.
func (c *claim) drop() {
	if c.kept != nil && c.kept != c.t {
		_ = c.kept.h.Release()
	}
	c.kept = nil
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
