package tensor

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// Operation is the name of an operation and of its operands. Operations that
// run often make theirs once and begin with [Taken.Begin].
type Operation struct {
	name     string
	operands []string
	devices  bool           // operands may be on devices
	site     invariant.Site // of one call; only in the copy that a dead tensor has
}

// NewOperation returns the operation of that name. In errors its operands have
// the given names, in order, and the others their numbers.
func NewOperation(name string, operands ...string) *Operation {
	return &Operation{name: name, operands: slices.Clone(operands)}
}

// OnDevices permits operands that are on devices, whose bytes [Taken.Bytes]
// does not return, and returns o. Other operations refuse them with
// [ErrDevice].
func (o *Operation) OnDevices() *Operation {
	o.devices = true
	return o
}

// Name returns the name.
func (o *Operation) Name() string { return o.name }

// operand returns the name of operand i in an error.
func (o *Operation) operand(i int) string {
	if i < len(o.operands) {
		return o.operands[i]
	}
	return fmt.Sprintf("operand %d", i)
}

// here returns the operation that a tensor stores when it ends now.
func (o *Operation) here(skip int) *Operation {
	if invariant.Enabled {
		return &Operation{name: o.name, site: invariant.Here(skip + 1)}
	}
	return o
}

// Taken is the operands of a running operation. Until Commit, Rollback or Fail,
// none of them can be freed, and those that may be overwritten cannot be read
// elsewhere. A Taken belongs to one goroutine and must not be copied. The zero
// Taken has ended.
type Taken struct {
	op     *Operation
	claims []claim
	few    [3]claim
	taken  bool
	twice  bool // an operand is listed twice
}

// Take begins an operation: it takes a use of every operand, and the lock of
// those that are given up and exclusive. After an error nothing was consumed.
//
// The operation then computes and calls Commit, which ends the tensors that
// were given up, whether or not their bytes were used. If it fails before its
// first write into an operand it calls Rollback, after that Fail. Rollback
// after Commit or Fail does nothing, so it can be deferred.
//
//	taken, err := tensor.Take("relu", x)
//	if err != nil {
//		return nil, err
//	}
//	defer taken.Rollback()
func Take(op string, operands ...Operand) (*Taken, error) {
	k := new(Taken)
	if err := k.Begin(NewOperation(op), operands...); err != nil {
		return nil, err
	}
	return k, nil
}

// Begin is [Take] into a Taken that has ended or was never begun.
func (k *Taken) Begin(op *Operation, operands ...Operand) error {
	if k.taken {
		invariant.Failf("tensor: %s begins before %s has ended", op.name, k.op.name)
	}
	if k.claims == nil {
		k.claims = k.few[:0]
	}
	k.op, k.claims, k.twice = op, k.claims[:0], false
	for i, o := range operands {
		t, sem := read(o)
		if t == nil || t.buf == nil {
			k.Clear()
			return errNil(op.name+": "+op.operand(i), t)
		}
		for j := range k.claims {
			k.twice = k.twice || k.claims[j].t.h.Same(t.h)
		}
		k.claims = append(k.claims, claim{t: t, sem: sem})
	}
	if k.twice {
		if err := k.checkTwice(); err != nil {
			return err
		}
	}
	k.taken = true
	for i := range k.claims {
		if err := k.acquire(i); err != nil {
			k.Rollback()
			return err
		}
	}
	return nil
}

func (k *Taken) acquire(i int) (err error) {
	c := &k.claims[i]
	if k.twice && k.listed(i) >= 0 {
		err = c.borrow() // an operand that is listed twice is in use in either order: reuse must not write
	} else {
		err = c.acquire()
	}
	if err != nil {
		return c.t.refusal(k.operand(i), err)
	}
	if !k.op.devices && c.t.buf.Device() != nil {
		return c.t.refusal(k.operand(i), ErrDevice)
	}
	if c.sem == DonateInput && !c.t.isPlace() {
		return c.t.whyNoPlace(k.operand(i))
	}
	return nil
}

// operand returns the name of operand i in an error, which is the operation
// alone if there is no other operand.
func (k *Taken) operand(i int) string {
	if len(k.claims) == 1 && len(k.op.operands) == 0 {
		return k.op.name
	}
	return k.op.name + ": " + k.op.operand(i)
}

// checkTwice refuses a donated operand that is listed again, because its result
// would be wrong in place and a copy would break the donation.
func (k *Taken) checkTwice() error {
	for i := range k.claims {
		c := &k.claims[i]
		if c.sem == DonateInput && k.listed(i) >= 0 {
			return fmt.Errorf("%s: %s is donated as %s and listed again as %s, want it listed once: %w",
				k.op.name, c.t.describe(), k.op.operand(i), k.op.operand(k.listed(i)), ErrShared)
		}
	}
	return nil
}

// isPlace reports whether a result could be written over the tensor if it is
// exclusive.
func (t *Tensor) isPlace() bool { return !t.layout.Overlaps() && !t.pins }

// whyNoPlace returns nil if isPlace, and otherwise the error with the reason.
func (t *Tensor) whyNoPlace(op string) error {
	switch {
	case t.layout.Overlaps():
		return t.overlapError(op)
	case t.pins:
		return fmt.Errorf("%s: %s is a view of %d bytes of a buffer of %d, want at least half (in place it would pin the rest): %w",
			op, t.describe(), t.size, t.buf.Len(), ErrNotReusable)
	}
	return nil
}

// listed returns the index at which operand i is listed again, -1 if there is
// none.
func (k *Taken) listed(i int) int {
	for j := range k.claims {
		if i != j && k.claims[j].t.h.Same(k.claims[i].t.h) {
			return j
		}
	}
	return -1
}

// Tensor returns operand i. Its type, shape and layout stay readable after its
// end.
func (k *Taken) Tensor(i int) *Tensor { return k.claims[i].t }

// Bytes returns the bytes that operand i spans and the index at which its
// element [0,...,0] begins. They are valid until the Taken ends, and may be
// written only if InPlace(i).
func (k *Taken) Bytes(i int) (data []byte, first int) {
	c := &k.claims[i]
	if !c.held || c.t.buf.Device() != nil {
		return nil, 0
	}
	return c.t.bytes(), c.t.first
}

// Remote returns the bytes of operand i if it is on a device, and the position
// in them of its element [0,...,0], valid and writable as those of Bytes.
func (k *Taken) Remote(i int) (r *memory.Remote, offset int) {
	c := &k.claims[i]
	if !c.held {
		return nil, 0
	}
	return c.t.buf.Remote(), c.t.start + c.t.first
}

// InPlace reports whether operand i may be overwritten: it was given up, it is
// exclusive, no two of its elements share a byte, and it is not a small part of
// a large buffer. The operation itself checks whether the result fits there
// (width, shape, order of access); if it cannot use the bytes of a strict
// donation, it fails, after Rollback.
func (k *Taken) InPlace(i int) bool {
	c := &k.claims[i]
	return c.locked && c.t.isPlace()
}

// Keep returns the tensor that has the bytes of operand i from Commit on, with
// type dt and layout l, and its lowest element at that of the operand. Before
// Commit it can only be described; Rollback and Fail end it.
func (k *Taken) Keep(i int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	c := &k.claims[i]
	if !k.InPlace(i) || c.kept != nil {
		return nil, fmt.Errorf("%s: %s is no place for a result: %w", k.operand(i), c.t.describe(), ErrShared)
	}
	low, high := l.Span()
	if bytes, err := dt.ByteLen(high - low + 1); err != nil || bytes > c.t.size {
		return nil, fmt.Errorf("%s: got a result %s%s for the place of %s with %d bytes, want one that fits: %w", k.operand(i), dt, l, c.t.describe(), c.t.size, ErrShape)
	}
	if err := c.hold(k.op.name, c.t.start-low*dt.Size(), dt, l); err != nil {
		return nil, err
	}
	return c.kept, nil
}

// Stay makes operand i, which was given up, stay alive after Commit as the
// tensor of the result in its bytes, for a caller that wants the result in the
// tensor that it passed. It fails in the cases of Keep with the operand's own
// type and layout. Rollback and Fail end the operand as if Stay had not been
// called.
func (k *Taken) Stay(i int) error {
	c := &k.claims[i]
	if !k.InPlace(i) || c.kept != nil {
		return fmt.Errorf("%s: %s is no place for a result: %w", k.operand(i), c.t.describe(), ErrShared)
	}
	c.kept = c.t
	return nil
}

// View returns the tensor that shows the bytes of operand i from Commit on,
// starting at the byte offset. An operand that was given up and is exclusive
// passes its hold on; any other one shares its bytes. View is otherwise like
// Keep.
func (k *Taken) View(i, offset int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	c := &k.claims[i]
	if c.kept != nil {
		return nil, fmt.Errorf("%s: %s has a result already: %w", k.operand(i), c.t.describe(), ErrShared)
	}
	if err := c.hold(k.op.name, c.t.start+c.t.first+offset, dt, l); err != nil {
		return nil, err
	}
	return c.kept, nil
}

// Share returns another tensor that shows the bytes of operand i, in addition
// to that of View. It has a hold of its own from now on; if the operation
// fails, the caller releases it.
func (k *Taken) Share(i, offset int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	c := &k.claims[i]
	v, err := over(k.op.name, c.t.buf, c.t.start+c.t.first+offset, dt, l)
	if err != nil {
		return nil, err
	}
	if v.h, err = c.t.buf.NewHandle(); err != nil {
		return nil, fmt.Errorf("%s: %w", k.op.name, err)
	}
	return v, nil
}

// Gather copies the elements of operand i, which may have any layout, into dst
// in row-major order. dst is at least as long.
func (k *Taken) Gather(i int, dst []byte) { gather(dst, k.claims[i].t) }

// Spare makes operand i, which was given up, stay alive if the operation fails,
// with the contents that it then has, for a caller that knows which of them the
// operation cannot have changed. Commit is as if Spare had not been called.
func (k *Taken) Spare(i int) { k.claims[i].spared = true }

// Commit ends the operation successfully: operands that were given up are dead,
// and a later use of them is ErrDonated with the operation's name.
func (k *Taken) Commit() {
	if !k.taken {
		return
	}
	for i := range k.claims {
		c := &k.claims[i]
		if c.sem == ReuseInput {
			if c.kept != nil {
				reuse.inPlace.Add(1)
			} else {
				reuse.fresh.Add(1)
			}
		}
		c.commit(k.op)
	}
	k.taken = false
}

// Rollback ends an operation that has written nothing into its operands, which
// all stay as they were. After Commit or Fail it does nothing.
func (k *Taken) Rollback() {
	if !k.taken {
		return
	}
	for i := range k.claims {
		k.claims[i].rollback()
	}
	k.taken = false
}

// Fail ends an operation that failed after its first write into an operand:
// operands that were given up and not spared are dead, their bytes are freed,
// and the error is ErrPartlyWritten, with the failed step and the cause.
func (k *Taken) Fail(step string, cause error) error {
	if k.taken {
		for i := range k.claims {
			k.claims[i].fail(k.op)
		}
		k.taken = false
	}
	return fmt.Errorf("%s: %s %w: %w", k.op.name, step, ErrPartlyWritten, cause)
}

// Clear removes the operands from a Taken that has ended, so that a Taken that
// is kept for another call keeps no tensor. Its capacity stays.
func (k *Taken) Clear() {
	k.few = [3]claim{}
	if cap(k.claims) > len(k.few) {
		clear(k.claims[:cap(k.claims)])
	}
	k.claims = k.claims[:0]
}

var reuse struct{ inPlace, fresh atomic.Int64 }

// ReuseCounts returns how many operands that were passed with Reuse were
// overwritten by a result since the start, and how many were not.
func ReuseCounts() (inPlace, fresh int64) { return reuse.inPlace.Load(), reuse.fresh.Load() }
