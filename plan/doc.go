// Package plan says where the values of a program live and when, in pure
// numbers and strings.
//
//	p, err := plan.ReadJSON(file)            // as tenure plan --json writes it
//	fmt.Println(p.ArenaBytes, p.LowerBoundBytes, p.Peak.Step)
//	err = p.Report(os.Stdout)
//
// It has two halves that meet in the planner:
//
//   - A [Problem] is a packing question: storages made of pieces, each piece
//     with its own lifetime, one base offset to be found per storage.
//     [Problem.LowerBound] is the largest number of bytes that are live at one
//     moment, with the moment and the pieces as its witness;
//     [Problem.CheckPlacement] is the plain quadratic proof of an answer. The
//     planner, internal/plan/solve, finds answers.
//   - A [Plan] is the document that a run is executed from: the execution
//     order, every value's place and life, and which operands were put in place
//     or not, and why. It is read and written as JSON, reported as text and
//     drawn as a picture.
//
// # Time
//
// Time runs in half-steps: step k reads at 2k and writes at 2k+1. A value that
// step i writes and step k reads last lives in [2i+1, 2k+2): it clashes with
// what step k writes. A value that step k overwrites in place ends one
// half-step earlier, at 2k+1, so the one rule "what overlaps in time does not
// overlap in bytes" covers in-place work too.
//
// # Blocks
//
// Bytes are handed out in blocks of [Problem.Align] bytes. A storage starts on
// a block, and a piece occupies every block that it touches: two storages never
// share a block at the same time. All bounds and sizes of a Problem count whole
// blocks.
//
// # Strides
//
// A value of a plan may be a box in the bytes of another one, with rows of that
// one between its own ([Value.Strides]). It takes the bytes of its extent, from
// its first element to behind its last: a figure, bound or [Piece] counts
// these, whatever else lies between.
//
// Nothing here owns memory, and no value is changed by reading it: a Problem,
// Plan or Placement may be read from any number of goroutines as long as none
// writes to it.
package plan
