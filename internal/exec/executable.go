package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// Options say how a program is compiled.
type Options struct {
	Threads       int // workers that run a step; at least 1
	MaxConcurrent int // runs at a time that the plan's total counts; at least 1

	// Declined and Copies come from the passes and are part of the plan's
	// report.
	Declined []plan.Declined
	Copies   []plan.Copy

	// Store packs constants into the forms that tasks read; nil to read all
	// constants as they are. The table of weights has those of the store, and
	// maybe constants of this program alone.
	Store *weights.Store

	// Compressed makes tasks read large constants compressed, without loss,
	// where they can.
	Compressed bool

	// Direct makes convolutions read constant weights that are not transformed.
	Direct bool

	// Fixed says which axes of operands are not expected to have other sizes in
	// instances: forms of constants may follow from them. An instance for which
	// they would be others is refused.
	Fixed compute.Fixed

	// LeastMemory puts results in place that one thread has to compute there,
	// where several would be faster.
	LeastMemory bool

	// Effort bounds the search for a placement, see package plan/solve.
	Effort int64

	// Capacity, where it is not nil, is the arena for executables of many
	// sizes. Values of each are placed in at most so many bytes, if they were
	// before, and the executable has the figures of its proof.
	Capacity *solve.Capacity

	// Apart keeps operands out of the bytes of results that they are parts of.
	// Then no value of a plan for smaller sizes lies where that of larger ones
	// has none.
	Apart bool

	limits *limits // of joins, where they are found
}

// Executable is a compiled program: the numbers of its plan, proved, and where
// each operand and result of each call lies. It is immutable.
type Executable struct {
	Program      *ir.Program // final; must not be changed. Its values may have other types in the executable.
	ArenaBytes   int64
	ScratchBytes int64 // of all threads

	structure *structure
	types     ir.Types
	weights   ir.Weights
	packing   *packing
	offsets   []int64         // of the storages in the arena
	layouts   []*shape.Layout // by ID: of values that have strides; empty where none has
	scratch   []int64         // of each call, in bytes per worker

	steps   []step // by number of the call
	places  []ref  // by number of the value: see lowering
	code    []instr
	dynamic []dynamicInfo // per value whose size depends on data, then one per spare
	proof   check.Figures // with Options.Capacity
	taken   []bool        // per parameter: the program writes into it or returns it
	results []resultInfo

	tasks    atomic.Pointer[tasks] // bound when it was compiled, until a runner takes them
	document document
}

// step is a call with the facts that a runner needs.
type step struct {
	call    *ir.Call
	at      []int32 // the numbers of the operands, then of the results
	first   int     // the number of the first of them among those of all steps
	writes  bool    // into a parameter
	dynamic bool    // it is bound when it runs: the size of an operand or result depends on data
	*rare
}

// rare has the facts that a runner needs of a call with regions, or after which
// buffers are freed. Other calls share an empty one.
type rare struct {
	freed  []int     // dynamic values whose own buffers are freed after it
	left   [][]int   // per region: those that are freed when the region has ended
	yields [][]yield // per region of a branch: its results
	loop   *loop     // of a loop
}

var none rare

// ref returns where operand or result i of call k lies; results come after the
// operands.
func (e *Executable) ref(k, i int) *ref { return &e.places[e.steps[k].at[i]] }

// ref is where an operand or result of a call lies. There are many of them:
// they have no pointers.
type ref struct {
	offset, size int64
	dynamic      int // number of the value whose size depends on data, -1 for others
	arg          int32
	weight       int32 // its ID
	space        space
}

// space is a plan.Space.
type space uint8

const (
	nowhere space = iota
	arenaSpace
	inputSpace
	outputSpace
	weightSpace
	ownSpace
	slotSpace
)

func spaceOf(s plan.Space) space {
	switch s {
	case plan.SpaceArena:
		return arenaSpace
	case plan.SpaceInput:
		return inputSpace
	case plan.SpaceOutput:
		return outputSpace
	case plan.SpaceWeight:
		return weightSpace
	case plan.SpaceOwn:
		return ownSpace
	case plan.SpaceSlot:
		return slotSpace
	}
	panic("BUG: exec: a value in the space " + string(s))
}

// yield is a value that a region returns as a dynamic result of the call around
// it.
type yield struct {
	ref
	typ op.Type
	to  int  // number of the result among the dynamic values
	in  bool // the result's place in the arena, where the region has computed it
}

// dynamicInfo has the facts that a runner needs of a value whose size depends
// on data.
type dynamicInfo struct {
	isResult bool           // of the program
	purpose  memory.Purpose // of its buffers: IO where one may become a result
}

// resultInfo is where a result of the program comes from.
type resultInfo struct {
	input   int       // the parameter whose bytes it comes back in, or -1
	dynamic int       // its number among the values whose size depends on data, or -1
	types   []op.Type // one of which a dynamic result has, if they are known
}

// Compile verifies and compiles a final program: the sizes of its inputs are
// known, every result has bytes of its own, operands that may be overwritten
// are marked. The error of a program that is not well-formed is that of
// [ir.VerifyKnown]. table may be nil where the program has no weights.
func Compile(ctx context.Context, p *ir.Program, table ir.Weights, o Options) (*Executable, error) {
	if table == nil {
		table = ir.WeightMap{}
	}
	if err := ir.VerifyKnown(p, ir.Known(table)); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	e, err := newStructure(p, o).compile(ctx, ir.TypesOf(p), table)
	if err != nil {
		return nil, err
	}
	return e, e.proved()
}

// CheckKernels reports, all at once, the operators of a program that no
// kernel runs.
func CheckKernels(p *ir.Program) error {
	missing := map[string][]string{}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		if len(c.Regions) == 0 && !compute.Supported(c.Op) {
			missing[c.Op.Name] = append(missing[c.Op.Name], c.Where())
		}
	})
	if len(missing) == 0 {
		return nil
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		faults = append(faults, fmt.Errorf("operator %s has no kernel, wanted by %s: %w", name, some(missing[name]), op.ErrUnsupported))
	}
	return errors.Join(faults...)
}

// some lists names, the first few of many.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// TakesInput reports whether the program overwrites parameter i, or returns it.
func (e *Executable) TakesInput(i int) bool { return e.taken[i] }

// WhyNotTaken says why nothing lies in the bytes of parameter i.
func (e *Executable) WhyNotTaken(i int) string {
	name := e.Program.Body.Params[i].Name
	if d, err := e.Plan(); err == nil {
		for _, d := range d.Declined {
			if d.Value == name {
				return fmt.Sprintf("%s cannot write into it: %s", d.Where(), d.Reason)
			}
		}
	}
	return "no operator that reads it can write its result into its bytes"
}

// OutputInInput returns the donated parameter in whose bytes result i comes
// back, -1 for none.
func (e *Executable) OutputInInput(i int) int { return e.results[i].input }

// ResultType returns the type of result i.
func (e *Executable) ResultType(i int) op.Type { return e.types.Of(e.Program.Body.Results[i]) }

// Draws reports whether a run may draw random numbers: then [Runner.Draws]
// counts.
func (e *Executable) Draws() bool { return e.structure.draws }

// PossibleTypes returns the static types one of which result i has when the
// program runs, if its size depends on data. It is nil for a result of static
// type, and where the types are not known. The caller must not change it.
func (e *Executable) PossibleTypes(i int) []op.Type { return e.results[i].types }
