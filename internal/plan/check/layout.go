package check

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// Layout has the numbers of a plan, which a run is executed from, without its
// names, its figures and its report. Calls run in the program's order.
type Layout struct {
	Values           []Position // by ID
	Scratch          []int64    // by number of the call, in bytes per worker
	ScratchPerThread int64      // the largest of them
	ArenaBytes       int64
}

// Position is where a value lies. Its fields are those of [plan.Value].
type Position struct {
	Space        plan.Space
	Arg          int
	Offset, Size int64
	Strides      []int     // as in [plan.Value], not written; nil for a contiguous value
	End          plan.Time // when a buffer of its own is freed; not read of others
}

// Prover proves layouts of one program, for any types of its values. It keeps
// the facts that do not depend on the types, and no state of a proof. It is for
// one goroutine at a time.
type Prover struct {
	checker *checker
	proved  bool // the last layout
}

// NewProver returns a prover of layouts of a well-formed program, which must
// not be changed after that.
func NewProver(p *ir.Program) *Prover { return &Prover{checker: newChecker(p)} }

// Prove proves that the layout is a safe way to run the program with values of
// the given types, which have to follow from the operators' shape rules. It
// proves the rules of [Check] that concern a layout: [Order], [Place], [Read],
// [Alias], [Write], [Branch] and [Output], and the bytes of the arena and of
// scratch. The error is a [Violation] of the first rule that does not hold.
func (p *Prover) Prove(types ir.Types, l *Layout, weights ir.Weights) error {
	c := p.checker
	p.proved = false
	c.set(types, weights)
	c.layout = l
	if v := c.first(c.laidOut, c.places, c.run, c.outputs, c.extents, c.scratch); v != nil {
		return v
	}
	p.proved = true
	return nil
}

// Figures are the bytes that a run over a layout takes.
type Figures struct {
	ArenaBytes       int64
	ScratchPerThread int64
	IOBytes          int64 // inputs and outputs
}

// Figures returns the figures of the layout that was proved last, as the proof
// has found them. It is an error where the last one was not proved.
func (p *Prover) Figures() (Figures, error) {
	c := p.checker
	if !p.proved {
		return Figures{}, errors.New("BUG: check: the figures of a layout that was not proved")
	}
	io, fault := c.io()
	if fault != nil {
		return Figures{}, fault
	}
	return Figures{ArenaBytes: c.arena(), ScratchPerThread: c.layout.ScratchPerThread, IOBytes: io}, nil
}

// laidOut takes the places of the values from the layout.
func (c *checker) laidOut() *Violation {
	if got, want := len(c.layout.Values), len(c.values); got != want {
		return c.fault(Document, nil, fmt.Sprintf("%d places", got), fmt.Sprintf("one per ID, %d", want))
	}
	if got, want := len(c.layout.Scratch), len(c.index.Calls); got != want {
		return c.fault(Document, nil, fmt.Sprintf("scratch of %d steps", got), fmt.Sprintf("one per call, %d", want))
	}
	for _, v := range c.listed {
		at := &c.layout.Values[v.ID]
		if at.Offset < 0 || at.Size < 0 || at.Size > plan.MaxBytes-at.Offset || at.Arg < 0 {
			return c.fault(Document, c.of(v), fmt.Sprintf("%d bytes at offset %d, arg %d", at.Size, at.Offset, at.Arg), "0 or more")
		}
		if fault := c.place(c.of(v), at); fault != nil {
			return fault
		}
	}
	return nil
}

// extents proves that the arena has as many bytes as the values in it take.
func (c *checker) extents() *Violation {
	return c.figure("arena_bytes", c.layout.ArenaBytes, c.arena())
}
