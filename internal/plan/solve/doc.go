// Package solve finds placements for a plan.Problem: one base offset per
// storage, with as few bytes as it can.
//
// [Solve] goes from cheap to thorough and stops as soon as the arena is as
// small as the problem's lower bound, which is a proof that nothing smaller
// exists:
//
//  1. A portfolio of greedy placements: every ranking of the storages (by size,
//     by duration, by area, by how crowded their lifetime is, ...), each under
//     two rules of fit. It takes well under a millisecond for some hundred
//     storages, and on the graphs of convolutional networks and transformers it
//     nearly always ends here.
//  2. A local search that moves the storages which stick out of the bound to
//     the front of the best order. It is at its best where rigid storages with
//     holes interlock.
//  3. Branch and bound: short exact searches under shaken preferences, at the
//     bound and between the bound and the best placement. It is at its best on
//     many plain buffers, and it ends early where it proves that nothing
//     smaller exists.
//
// The result depends on the problem and on the options alone, never on the
// clock, unless a deadline is set: effort is counted in steps of work. The same
// problem yields the same bytes on every machine.
//
// A problem is only read. Solve may be called from many goroutines.
package solve
