package plan

import (
	"errors"
	"fmt"
)

// Format is the version of the plan document that this package writes, and the
// only one that it reads.
const Format = 6

// ErrDocument is the kind of every error about a plan document that is
// malformed or contradicts itself.
var ErrDocument = errors.New("invalid plan")

// Space says in whose bytes a value lives.
type Space string

const (
	SpaceArena    Space = "arena"    // the run's arena, at Value.Offset
	SpaceInput    Space = "input"    // the caller's input number Value.Arg
	SpaceOutput   Space = "output"   // the buffer of output number Value.Arg
	SpaceWeight   Space = "weight"   // the model's weights
	SpaceConstant Space = "constant" // a constant of the program
	SpaceOwn      Space = "own"      // a buffer of its own, made at its step: the size depends on data, and Value.Size is 0
	SpaceSlot     Space = "slot"     // the part that an iteration adds to the loop's result with the ID Value.Arg, from its first byte on
)

// AliasKind says how an operator uses an operand's bytes for its result.
type AliasKind string

const (
	AliasView       AliasKind = "view"       // the result is the operand's bytes, or a part of them
	AliasSame       AliasKind = "same"       // element k of the result replaces element k of the operand
	AliasAccumulate AliasKind = "accumulate" // the result is the operand with something added
	AliasUpdate     AliasKind = "update"     // a region of the operand is written
	AliasPermute    AliasKind = "permute"    // the result has the operand's elements in another order
	AliasNarrow     AliasKind = "narrow"     // element k of the result replaces element k of the operand, and is smaller
	AliasPart       AliasKind = "part"       // the operand lies where it is a part of the result, and is not copied
)

// Plan is the document that a run is executed from. The field names of its JSON
// form are part of the format.
type Plan struct {
	Format           int          `json:"format"`             // 6
	Model            string       `json:"model"`              // hash of the program's text
	Shapes           []Shape      `json:"shapes"`             // types of the graph's inputs
	ArenaBytes       int64        `json:"arena_bytes"`        // graph inputs and outputs, at most excluded
	IOBytes          int64        `json:"io_bytes"`           // graph inputs and outputs
	WeightBytes      int64        `json:"weight_bytes"`       // weights and constants, as they lie in memory: see Packed
	ScratchBytes     int64        `json:"scratch_bytes"`      // ScratchPerThread × Threads
	ScratchPerThread int64        `json:"scratch_per_thread"` // the largest Step.Scratch
	Threads          int          `json:"threads"`
	MaxConcurrent    int          `json:"max_concurrent"`    // runs at a time: each takes PerRun bytes
	LowerBoundBytes  int64        `json:"lower_bound_bytes"` // of the arena, for this order and aliasing
	Unpromised       []Unpromised `json:"unpromised"`
	Steps            []Step       `json:"steps"` // in execution order
	Values           []Value      `json:"values"`
	InPlace          []InPlace    `json:"in_place"` // this list and those below in the program's order
	Declined         []Declined   `json:"declined"`
	Copies           []Copy       `json:"copies"`
	Packed           []Packed     `json:"packed"`
	Peak             Peak         `json:"peak"`
}

// Shape is the type that a graph input was planned for.
type Shape struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Donated bool   `json:"donated,omitempty"` // the run may overwrite its bytes, and return outputs in them
}

// Unpromised is a value whose size depends on data and that nothing bounds: it
// gets a buffer of its own at its step, outside every figure of the plan. A
// value in SpaceOwn is one, and one of unknown size in SpaceOutput, unless its
// types are those that branches return.
type Unpromised struct {
	Value  string `json:"value"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Step is one call of the program.
type Step struct {
	Call    int    `json:"call"` // preorder index of the call in the program
	Op      string `json:"op"`
	Node    string `json:"node"`
	Scratch int64  `json:"scratch"` // bytes per thread

	// Moved is how many bytes a call that computes nothing writes each time it
	// runs, such as a concat whose operands do not lie in its result: bytes
	// that would not move if all were in place. It is 0 where sizes depend on
	// data.
	Moved int64 `json:"moved,omitempty"`

	Reads []int `json:"reads"` // ids of the operands, in their order, without those that are left out
}

// Value is where a value lives and when. Offset counts from the start of its
// space (for SpaceInput and SpaceOutput: of that buffer). Inputs and weights
// live all the time, and a value in the bytes of an input, output or weight
// lives to the end.
//
// A value with Strides is a box in a larger frame, such as an operand of a
// concat in the concat's result: element i along axis d is Strides[d] elements
// after element i-1, the elements of one index of an axis end before the next
// index begins, and bytes of other values may lie between. A value without is
// contiguous, and only such a one is written without Strides.
type Value struct {
	ID     int    `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"type"`
	Space  Space  `json:"space"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"` // in bytes, of its elements
	// Strides has one entry per axis of the type, in elements; nil for a
	// contiguous value.
	Strides []int64 `json:"strides,omitempty"`
	Start   Time    `json:"start"`
	End     Time    `json:"end"`
	Arg     int     `json:"arg"` // index of the graph input or output for those spaces, else 0
}

// InPlace is a result that lives in the bytes of an operand, or, as AliasPart,
// an operand that lives in the bytes of a result that is made of several.
type InPlace struct {
	Call    int       `json:"call"`
	Operand int       `json:"operand"` // index among the call's operands
	Result  int       `json:"result"`  // index among the call's results
	Value   string    `json:"value"`   // the result
	Of      string    `json:"of"`      // the operand
	Kind    AliasKind `json:"kind"`
	Bytes   int64     `json:"bytes"` // that needed no place of their own
}

// Declined is an operand whose bytes the operator could have taken, or that
// could have been computed as a part of the result, and the reason why it was
// not so.
type Declined struct {
	Call    int    `json:"call"`
	Op      string `json:"op"`
	Node    string `json:"node"`
	Operand int    `json:"operand"`
	Value   string `json:"value"` // the operand
	Reason  string `json:"reason"`
	Bytes   int64  `json:"bytes"` // that it cost
}

// Copy is a copy that the run makes and that no kernel requires.
type Copy struct {
	Value  string `json:"value"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
	Bytes  int64  `json:"bytes"`
}

// Packed is a weight that kernels read in a form of their own, which is made
// once for all plans of a model. It is the same for all sizes of the inputs.
type Packed struct {
	Weight   string `json:"weight"`
	ID       int    `json:"id"`       // of the weight
	Form     string `json:"form"`     // its name; where parts are read by themselves, the names of theirs, with "; " between
	Bytes    int64  `json:"bytes"`    // in that form
	Unloaded int64  `json:"unloaded"` // of the weight's own bytes, which are not in memory then: all of them or none
}

// Peak is the first moment at which the most bytes of the arena are live.
type Peak struct {
	Step  int   `json:"step"` // index into Plan.Steps
	Bytes int64 `json:"bytes"`
	Live  []int `json:"live"` // ids of the values that live there
}

// PerRun returns every byte that one run takes besides the unpromised ones:
// arena, scratch, inputs and outputs. Runs share the weights.
func (p *Plan) PerRun() int64 { return p.ArenaBytes + p.ScratchBytes + p.IOBytes }

// Total returns every byte that MaxConcurrent runs of this plan take besides
// the unpromised ones, weights included.
func (p *Plan) Total() int64 { return p.WeightBytes + int64(p.MaxConcurrent)*p.PerRun() }

func docErr(format string, args ...any) error {
	return fmt.Errorf("plan: %w: %w", ErrDocument, fmt.Errorf(format, args...))
}
