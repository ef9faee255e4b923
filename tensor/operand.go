package tensor

import "fmt"

// CopySemantics is what an operation may do with the bytes of an operand: read
// them, overwrite them if possible, or overwrite them or fail.
type CopySemantics uint8

// The three ways to pass an operand.
const (
	Borrow      CopySemantics = iota // borrow: the caller keeps the tensor, its bytes are never written
	ReuseInput                       // reuse: given up; written in place if exclusive, otherwise the result is computed into fresh bytes
	DonateInput                      // donate: given up; if its bytes cannot be reused the call fails with the reason and consumes nothing

	AlwaysCopy = Borrow // another name of Borrow
)

// String returns the word of the program text.
func (s CopySemantics) String() string {
	switch s {
	case Borrow:
		return "borrow"
	case ReuseInput:
		return "reuse"
	case DonateInput:
		return "donate"
	}
	return fmt.Sprintf("semantics(%d)", uint8(s))
}

// Operand is an argument of an operation: a tensor and its semantics. A *Tensor
// is borrowed; [Tensor.Donate] and [Tensor.Reuse] return operands that are
// given up.
type Operand interface {
	Tensor() *Tensor
	Semantics() CopySemantics
}

// Tensor returns t: a *Tensor is a borrowed operand.
func (t *Tensor) Tensor() *Tensor { return t }

// Semantics returns Borrow.
func (t *Tensor) Semantics() CopySemantics { return Borrow }

// read returns an operand's tensor and semantics, without a dynamic call for
// the types of this package.
func read(o Operand) (*Tensor, CopySemantics) {
	switch o := o.(type) {
	case nil:
		return nil, Borrow
	case *Tensor:
		return o, Borrow
	case Donated:
		return o.t, DonateInput
	case Reused:
		return o.t, ReuseInput
	}
	return o.Tensor(), o.Semantics()
}

// Donated is a tensor that is given up strictly.
type Donated struct{ t *Tensor }

// Donate marks t as given up to the operation that it is passed to. It has no
// effect before that operation.
func (t *Tensor) Donate() Donated { return Donated{t} }

// Tensor returns the tensor.
func (d Donated) Tensor() *Tensor { return d.t }

// Semantics returns DonateInput.
func (d Donated) Semantics() CopySemantics { return DonateInput }

// Reused is a tensor that is given up and reused if possible.
type Reused struct{ t *Tensor }

// Reuse marks t as given up to the operation that it is passed to. It has no
// effect before that operation.
func (t *Tensor) Reuse() Reused { return Reused{t} }

// Tensor returns the tensor.
func (r Reused) Tensor() *Tensor { return r.t }

// Semantics returns ReuseInput.
func (r Reused) Semantics() CopySemantics { return ReuseInput }
