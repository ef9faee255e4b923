package tensor

// A view is another tensor over the same bytes: a separate holder with its own
// Release.
//
// On a *Tensor these methods share: afterwards the bytes have one holder more,
// and cannot be written until one is left. On [Donated] and [Reused] they give
// the tensor up and move its hold to the view, so that the result of a chain of
// views is still writable.

// Slice returns a view of the elements that the ranges select, one range per
// leading dimension.
func (t *Tensor) Slice(ranges ...Range) (*Tensor, error) {
	return t.derive("slice", Borrow, sliced(ranges))
}

// Index returns a view of the elements at the given positions of the leading
// dimensions, without those dimensions: for a batch of images, Index(2) is the
// third image. A negative position counts from the end. For single numbers see
// [At].
func (t *Tensor) Index(places ...int) (*Tensor, error) {
	return t.derive("index", Borrow, indexed(places))
}

// Reshape returns a view with other dimensions over the same elements in the
// same order; one of dims may be -1, for the remaining size. The tensor must be
// contiguous.
func (t *Tensor) Reshape(dims ...int) (*Tensor, error) {
	return t.derive("reshape", Borrow, reshaped(dims))
}

// Transpose returns a view with the order of the dimensions reversed.
func (t *Tensor) Transpose() (*Tensor, error) { return t.derive("transpose", Borrow, reversed) }

// Permute returns a view whose dimension i is the tensor's dimension axes[i].
func (t *Tensor) Permute(axes ...int) (*Tensor, error) {
	return t.derive("permute", Borrow, permuted(axes))
}

// Broadcast returns a view of the given dimensions in which dimensions of size
// 1, and new leading ones, repeat. It is never exclusive.
func (t *Tensor) Broadcast(dims ...int) (*Tensor, error) {
	return t.derive("broadcast", Borrow, broadcasted(dims))
}

// Squeeze returns a view without the given dimensions, which must have size 1;
// without arguments, without all of size 1. A negative axis counts from the
// end.
func (t *Tensor) Squeeze(axes ...int) (*Tensor, error) {
	return t.derive("squeeze", Borrow, squeezed(axes))
}

// Unsqueeze returns a view with new dimensions of size 1 at the given axes of
// the result. A negative axis counts from the end.
func (t *Tensor) Unsqueeze(axes ...int) (*Tensor, error) {
	return t.derive("unsqueeze", Borrow, unsqueezed(axes))
}

// View returns another tensor with the same layout over the same bytes.
func (t *Tensor) View() (*Tensor, error) { return t.derive("view", Borrow, same) }

// Slice is [Tensor.Slice]; the hold moves to the view.
func (d Donated) Slice(ranges ...Range) (*Tensor, error) {
	return d.t.derive("slice", DonateInput, sliced(ranges))
}

// Index is [Tensor.Index]; the hold moves to the view.
func (d Donated) Index(places ...int) (*Tensor, error) {
	return d.t.derive("index", DonateInput, indexed(places))
}

// Reshape is [Tensor.Reshape]; the hold moves to the view.
func (d Donated) Reshape(dims ...int) (*Tensor, error) {
	return d.t.derive("reshape", DonateInput, reshaped(dims))
}

// Transpose is [Tensor.Transpose]; the hold moves to the view.
func (d Donated) Transpose() (*Tensor, error) {
	return d.t.derive("transpose", DonateInput, reversed)
}

// Permute is [Tensor.Permute]; the hold moves to the view.
func (d Donated) Permute(axes ...int) (*Tensor, error) {
	return d.t.derive("permute", DonateInput, permuted(axes))
}

// Squeeze is [Tensor.Squeeze]; the hold moves to the view.
func (d Donated) Squeeze(axes ...int) (*Tensor, error) {
	return d.t.derive("squeeze", DonateInput, squeezed(axes))
}

// Unsqueeze is [Tensor.Unsqueeze]; the hold moves to the view.
func (d Donated) Unsqueeze(axes ...int) (*Tensor, error) {
	return d.t.derive("unsqueeze", DonateInput, unsqueezed(axes))
}

// Slice is [Tensor.Slice]; the hold moves to the view.
func (r Reused) Slice(ranges ...Range) (*Tensor, error) {
	return r.t.derive("slice", ReuseInput, sliced(ranges))
}

// Index is [Tensor.Index]; the hold moves to the view.
func (r Reused) Index(places ...int) (*Tensor, error) {
	return r.t.derive("index", ReuseInput, indexed(places))
}

// Reshape is [Tensor.Reshape]; the hold moves to the view.
func (r Reused) Reshape(dims ...int) (*Tensor, error) {
	return r.t.derive("reshape", ReuseInput, reshaped(dims))
}

// Transpose is [Tensor.Transpose]; the hold moves to the view.
func (r Reused) Transpose() (*Tensor, error) {
	return r.t.derive("transpose", ReuseInput, reversed)
}

// Permute is [Tensor.Permute]; the hold moves to the view.
func (r Reused) Permute(axes ...int) (*Tensor, error) {
	return r.t.derive("permute", ReuseInput, permuted(axes))
}

// Squeeze is [Tensor.Squeeze]; the hold moves to the view.
func (r Reused) Squeeze(axes ...int) (*Tensor, error) {
	return r.t.derive("squeeze", ReuseInput, squeezed(axes))
}

// Unsqueeze is [Tensor.Unsqueeze]; the hold moves to the view.
func (r Reused) Unsqueeze(axes ...int) (*Tensor, error) {
	return r.t.derive("unsqueeze", ReuseInput, unsqueezed(axes))
}

// derive makes the view of t that to describes and, if t is given up, ends t.
func (t *Tensor) derive(op string, sem CopySemantics, to relayout) (*Tensor, error) {
	if t == nil || t.buf == nil {
		return nil, errNil(op, t)
	}
	c := claim{t: t, sem: sem}
	if err := c.acquire(); err != nil {
		return nil, t.refusal(op, err)
	}
	if err := c.view(op, to); err != nil {
		c.rollback()
		return nil, err
	}
	c.commit(viewOps[op])
	return c.kept, nil
}

// viewOps are the view operations that can give up their operand.
var viewOps = func() map[string]*Operation {
	ops := map[string]*Operation{}
	for _, name := range []string{"slice", "index", "reshape", "transpose", "permute", "squeeze", "unsqueeze"} {
		ops[name] = NewOperation(name)
	}
	return ops
}()
