// Package check proves that a plan is safe to run: that a run which follows the
// document computes the program's results.
//
// [Check] trusts the program and the operator table, and nothing that made the
// plan. It does not read the `donate` marks of calls, and believes neither the
// lives that the document states nor its list of results in place: it simulates
// the run over bytes, derives both, and compares. For each space (the arena,
// the buffer of each input and of each output) it keeps which byte of which
// value every byte range holds. A view holds the bytes of the value that it is
// a view of, so that bytes are told apart by contents and not by names. Steps
// run in the order of the document.
//
// # Boxes
//
// A value may lie with strides, with bytes of others between its own: an
// operand of a concat where it is a part of the result, a slice of an axis, the
// interior of a padded value. Its place is a box: a first byte, and for each
// axis a count and a step, in canonical form, so that a place is known by its
// bytes and not by the shape of what lies there. What bytes hold is a list of
// pieces: a box of them, and the box of the bytes of a value that they hold. A
// padded 1x64x112x112 is one piece.
//
// Two boxes are compared in a frame: a mixed radix whose units are the steps of
// both, each a multiple of the next. In it boxes are ranges of digits, and
// their intersection and difference are boxes again, exactly. Boxes of one
// contiguous value, boxes of these, and such a value with axes that are merged
// or split have a frame. Boxes whose steps make none are not compared, and
// what depends on them is refused, never accepted:
//
//   - a write to a box leaves of a piece that has no frame with it only what is
//     outside of the extent of the box, from its first to behind its last byte;
//   - places without a frame overlap where their extents do;
//   - a read is refused unless pieces that have a frame with the operand's
//     place hold all of it;
//   - a result is not put in place where its bytes would be those of parts that
//     it has no frame with.
//
// A [Prover] proves the numbers alone that a run is executed from, a [Layout],
// by the same simulation: for one program and the types of its values, as often
// as their sizes change. It prints and hashes nothing. The rest of a document,
// its hash, names, figures and lists, is proved when there is a document.
//
// # Rules
//
// A plan is rejected with a [Violation] of one of these rules:
//
//  1. [Document]: the document is valid in itself and was made for this
//     program: its hash, its inputs, one entry per step and per value, values
//     in the program's order, that agree with the program in name, type and
//     size, and steps in operator, node and operands. Values whose size depends
//     on data have in the arena the most bytes that they can take, as
//     [ir.PossibleOf] finds them, and so have outputs whose possible types are
//     known; others have none, and are the ones that the document lists as
//     unpromised, with their nodes.
//  2. [Order]: every call is one step. Calls of one block may come in any
//     order, the calls of a region follow at once the call that they belong to,
//     regions one after the other. An operand is computed before it is used.
//     Impure calls keep the order of the program.
//  3. [Place]: the extent of a value lies within its space, at a multiple of
//     the alignment of its elements, and its elements need no more alignment
//     than those that the buffer of an input or output was made for. A value
//     with strides has elements of whole bytes, in a known number, in row-major
//     order, and no two of them share bytes; contiguous values have none.
//     Inputs and weights lie where the caller has them. A value in a weight's
//     bytes is a view of that weight.
//  4. [Read]: when a step reads an operand, all bytes of the operand's place
//     hold that operand, each at its offset. A buffer of a value's own, which
//     has no size in the document, is not freed before that step ends, nor
//     before a loop ends whose iterations read the value and that it was made
//     before.
//  5. [Alias]: a result shares bytes with an operand of its call only at the
//     offset and in the way that [op.Sig.AliasOf] allows, or from their
//     beginning on where [op.Sig.AliasAlone] does. It shares them with
//     more than one operand only where the rule is [op.Same] for each of them,
//     and with another result of the call never. With strides, a result may
//     lie in the bytes of an operand where both are the same bytes: as
//     [op.Same], [op.Accumulate] or [op.Update], or as a view of the whole
//     operand, whatever its shape. A view of a part of such an operand lies in
//     it only as [op.Sig.BoxOf] says. [op.Permute] and [op.Narrow] are for
//     contiguous bytes.
//     A result that is a box of an operand ([op.Alias.OfBoxes]) may lie where
//     that box is, and the kernel leaves it as it is there.
//     A result that is put together of its operands ([op.Alias.OfParts]) holds
//     what they do if one of them lies where it is a part of the result, or if
//     each is one piece of it and they are all of it. An operand lies there, or
//     is copied there from bytes outside of those that are written: these are
//     the parts that are copied, and what is no part.
//  6. [Write]: weights and inputs that are not donated are never written. A
//     donated input, and the buffer of an output before its value is written,
//     are free to hold other values.
//  7. [Branch]: every branch is run from the state before the call, and leaves
//     its result where the result of the call is planned, in the first bytes of
//     that place if another region returns more; the run copies it to an output
//     whose size it decides. After the call a byte holds a value if all
//     branches agree on it. The region of a loop is run twice, so that values
//     from outside and the loop state are seen to be there in every iteration;
//     the loop state lies in bytes of its own, or in all of those of its first
//     value where the loop may overwrite it, and where the call's result is;
//     copying one value there spoils no other (a value for a buffer of unknown
//     size is copied first). A result whose size is known, of a value that is
//     carried without one, has bytes of its own from the first iteration on.
//     A part of a stacked result, and what an iteration computes before it in
//     the same bytes, may lie in the slot of the result: where the part of the
//     iteration that runs is. The slot holds nothing when an iteration begins,
//     and all of the part when it ends. What is defined outside of an iteration
//     does not lie there, nor does the loop state.
//     Other operators that may run a region many times are rejected. What
//     calls with regions take and return has no strides, nor have the results
//     of their regions.
//  8. [Output]: at the end every output holds its value, in a buffer of its own
//     or in the first bytes of a donated input, half of them at least; no two
//     outputs share bytes.
//  9. [Figure]: the document's figures are those of the program and of the
//     places: see below.
//  10. [Claim]: the list of results in place has a true entry for each of them.
//     Each declined operand is one that a result of its call could have
//     overwritten and does not, each copy the result of a call that copies,
//     with their bytes. All three are in the program's order.
//
// A call whose wanted results are all views or boxes that lie in their
// operand's bytes, where they are in it, computes nothing: it is no write, and
// a runner may skip it. A view that lies elsewhere is a copy. Results of any
// other call are written in their own bytes alone: not in those between, where
// they have strides.
//
// # What is left to the run
//
// Of a value whose size depends on data and that nothing bounds, the document
// has no place in bytes: Check lets one byte stand for its buffer. It proves
// the rules above for the order, the moments when buffers are freed, outputs
// (each in a buffer of its own), and that such values are listed. It does not
// see, and the run decides and answers for:
//
//   - which buffers exist: whether a result is a view of an operand's buffer,
//     lies in it as its last holder, or has a new one; what loops carry and
//     branches return is shared by several values, never copied over another
//     one;
//   - where in its buffer a value begins;
//   - that a buffer is not overwritten while another value lies in it, and that
//     a value is dropped when the document says: the run counts holders, and
//     checks at its end that none is left;
//   - that an output shares its buffer with no other value: the run copies it
//     where it would;
//   - types: a result of known size of a call with such operands, and what has
//     to be one element, is compared when the step runs.
//
// Such a buffer never holds a value of known size, an input or a weight.
//
// # Figures
//
// The arena reaches to the end of the last block of 64 bytes that the extent of
// a value touches. Input, output and weight bytes are sums over the program,
// the latter with what packing adds and unloads; the bytes
// of an output that lies in a donated input count once. Scratch per thread is
// the largest scratch of a step, and no step has less than its operator
// declares (kernels that are not declared in the table are not seen here).
//
// Lives are derived from the program, the order and the places: a value lives
// from the step that writes it to the last step that reads it, and ends half a
// step earlier where that step's result lies in its bytes, unless some results
// of the step are views and others are computed; the result of a
// branch lives at least to the end of all regions, and the values that these
// return for it live as long as it does; the values that a loop reads from
// outside, takes and returns live to its end. A buffer of a value's own stays
// to the end of the last call of its block in which it is read. Inputs and
// weights live from the start to the end, and a value in the bytes of an input,
// output or weight lives to the end. The document has to state these lives.
//
// The peak is the first moment at which the most bytes, in blocks, live at
// once, with the values of the arena that live then. A value with strides
// counts with all blocks of its extent, whether or not another value lies in
// the bytes between its own. The lower bound is that
// number: where it meets the size of the arena, no other placement of this
// order and aliasing is smaller.
//
// # What is not proved
//
// Every field of the document is compared with the value that follows from the
// program and the other fields, but for these:
//
//   - threads and max_concurrent are choices; scratch_bytes has to be
//     scratch_per_thread times threads.
//   - The scratch of a step is between what its operator declares in the table
//     and scratch_per_thread. What a kernel takes beyond it depends on the
//     machine, and is not known here.
//   - Packed weights are weights of the program, each once, unload all of their
//     own bytes or none, and add up to weight_bytes. Which weights are packed,
//     in which forms and into how many bytes, is the kernels' matter.
//   - Whether an entry is missing in the lists of declined operands and of
//     copies.
//   - The reasons in the lists of unpromised values, declined operands and
//     copies, which are words.
//
// A place that is moved to where nothing is lost makes another plan, which is
// proved too if all figures are those of the new place.
//
// # Memory and concurrency
//
// Check reads the program, the plan and the weights' table, changes none and
// keeps none. It may run in many goroutines at once, a prover in one. Each step
// costs a search in what its spaces hold, and a pass over the boxes with gaps
// in them; each branch costs one pass over all of it.
package check
