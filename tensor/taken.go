package tensor

import (
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// Taken is the operands of a running operation: none can be freed, and none that may be overwritten can be read by anybody
// else, until Commit, Rollback or Fail. A Taken belongs to one goroutine.
type Taken struct {
	op     string
	claims []claim
	few    [3]claim
	ended  bool
}

// Take begins an operation: it takes a use of every operand, and the sole right to those that are given up and exclusive.
// When it returns an error nothing was consumed.
//
// An operation then computes and calls Commit, which ends the tensors that were given up, whether or not their bytes served.
// If it fails before its first write into an operand it calls Rollback, after that Fail. Rollback after either of the others
// does nothing, so it can be deferred.
//
//	taken, err := tensor.Take("relu", x)
//	if err != nil {
//		return nil, err
//	}
//	defer taken.Rollback()
func Take(op string, operands ...Operand) (*Taken, error) {
	k := &Taken{op: op}
	k.claims = k.few[:0]
	for i, o := range operands {
		if o == nil || o.Tensor() == nil || o.Tensor().buf == nil {
			return nil, errNil(fmt.Sprintf("%s: operand %d", op, i))
		}
		k.claims = append(k.claims, claim{t: o.Tensor(), sem: o.Semantics()})
	}
	if err := k.checkTwice(); err != nil {
		return nil, err
	}
	for i := range k.claims {
		c := &k.claims[i]
		var err error
		if k.listed(i) >= 0 {
			err = c.borrow(op) // whoever is in the list twice is in use, in whatever order: reuse must not write
		} else {
			err = c.acquire(op)
		}
		if err == nil && c.sem == DonateInput {
			err = k.checkPlace(i)
		}
		if err != nil {
			k.Rollback()
			return nil, err
		}
	}
	return k, nil
}

// checkTwice refuses a donated operand that is listed again: in place or not, no answer would be what the caller asked for.
func (k *Taken) checkTwice() error {
	for i := range k.claims {
		c := &k.claims[i]
		if c.sem == DonateInput && k.listed(i) >= 0 {
			return fmt.Errorf("%s: %s is donated as operand %d and listed again as operand %d, want it listed once: %w",
				k.op, c.t.describe(), i, k.listed(i), ErrShared)
		}
	}
	return nil
}

// checkPlace refuses donated operand i if nothing could be written there, although it is exclusive.
func (k *Taken) checkPlace(i int) error {
	t := k.claims[i].t
	if t.layout.Overlaps() {
		return t.overlapError(k.op)
	}
	if t.pins() {
		return fmt.Errorf("%s: donated operand %d is a view of %d bytes of a buffer of %d, want at least half (in place it would pin the rest): %w",
			k.op, i, t.size, t.buf.Len(), ErrShape)
	}
	return nil
}

// listed returns where operand i is listed again, -1 if nowhere.
func (k *Taken) listed(i int) int {
	for j := range k.claims {
		if i != j && k.claims[j].t.h.Same(k.claims[i].t.h) {
			return j
		}
	}
	return -1
}

// pins reports whether the tensor, reused in place, would keep more bytes alive than it shows.
func (t *Tensor) pins() bool { return t.size < t.buf.Len()-t.size }

// Tensor returns operand i, whose type, shape and layout stay readable also after its end.
func (k *Taken) Tensor(i int) *Tensor { return k.claims[i].t }

// Bytes returns the bytes that operand i spans and the index where its element [0,...,0] begins. They are valid until the
// Taken ends, and may be written only if InPlace(i).
func (k *Taken) Bytes(i int) (data []byte, first int) {
	c := &k.claims[i]
	if !c.held {
		return nil, 0
	}
	return c.t.bytes(), c.t.first
}

// InPlace reports whether operand i may be overwritten: it was given up, it is exclusive, no two of its elements share a
// byte, and it is not the small rest of a large buffer. Whether the result fits there (width, shape, order of access) is for
// the operation to know; a strict donation whose bytes it cannot use is an error, after Rollback.
func (k *Taken) InPlace(i int) bool {
	c := &k.claims[i]
	return c.locked && !c.t.layout.Overlaps() && !c.t.pins()
}

// Keep returns the tensor that will have the bytes of operand i after Commit: with dt and l, and its lowest element where
// the operand's is. The caller gives it to nobody before Commit; Rollback and Fail release it.
func (k *Taken) Keep(i int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	c := &k.claims[i]
	if !k.InPlace(i) || c.kept != nil {
		return nil, fmt.Errorf("%s: operand %d, %s, is no place for a result: %w", k.op, i, c.t.describe(), ErrShared)
	}
	low, _ := l.Span()
	v, err := c.hold(k.op, c.t.start-low*dt.Size(), dt, l)
	if err != nil {
		return nil, err
	}
	if v.size > c.t.size {
		_ = v.h.Release()
		return nil, fmt.Errorf("%s: got a result of %d bytes for the place of operand %d, want at most %d: %w", k.op, v.size, i, c.t.size, ErrShape)
	}
	c.kept = v
	return v, nil
}

// Commit ends the operation with success: operands that were given up are dead, and a later use of them is ErrDonated with
// the operation's name.
func (k *Taken) Commit() {
	k.end(func(c *claim) {
		if c.sem == ReuseInput {
			if c.kept != nil {
				reuse.inPlace.Add(1)
			} else {
				reuse.fresh.Add(1)
			}
		}
		c.commit(k.op)
	})
}

// Rollback ends an operation that has written nothing into its operands: all are what they were. After Commit or Fail it
// does nothing.
func (k *Taken) Rollback() { k.end((*claim).rollback) }

// Fail ends an operation that failed after its first write into an operand: what was given up is dead, its bytes go back,
// and the error is ErrPartlyWritten, with the step that failed and the cause.
func (k *Taken) Fail(step string, cause error) error {
	k.end(func(c *claim) {
		if c.kept != nil {
			_ = c.kept.h.Release() // nobody else knows it
			c.kept = nil
		}
		c.commit(k.op)
	})
	return fmt.Errorf("%s: %s %w: %w", k.op, step, ErrPartlyWritten, cause)
}

func (k *Taken) end(each func(*claim)) {
	if k.ended {
		return
	}
	k.ended = true
	for i := range k.claims {
		each(&k.claims[i])
	}
}

var reuse struct{ inPlace, fresh atomic.Int64 }

// ReuseCounts returns how many operands passed with Reuse have given their bytes to a result since the start, and how many
// have not.
func ReuseCounts() (inPlace, fresh int64) { return reuse.inPlace.Load(), reuse.fresh.Load() }
