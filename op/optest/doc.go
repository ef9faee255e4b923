// Package optest tests operators, those of users too, against their
// declarations.
//
//	if err := optest.Check(def, optest.Case{Args: []optest.Operand{optest.Of([]float32{1, 2, 3}, 3)}}); err != nil {
//		t.Error(err)
//	}
//
// # What it checks
//
// [Check] runs an operator on the operands of each [Case]: into fresh results,
// and once for every operand that its alias rules allow to be overwritten, in
// that operand's bytes. It reports
//
//   - a shape rule that fails, panics or contradicts itself where dimensions or
//     values are not known;
//   - a kernel that writes outside its results (operands, neighbouring bytes,
//     scratch of others), leaves bytes of a result unwritten, or reads what
//     stood in its results or its scratch before;
//   - a kernel whose results depend on the order of its tiles or on where
//     operands lie;
//   - a result in place that differs by one bit from the fresh one, and a view
//     that is not the operand's bytes;
//   - a result that differs from the case's, and a call without the error that
//     the case states.
//
// # Memory
//
// All buffers are on the Go heap and belong to the call of Check.
//
// # Concurrency
//
// Functions may be called from any goroutine. Check runs kernels on the
// caller's.
package optest
