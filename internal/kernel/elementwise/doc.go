// Package elementwise has the kernels that compute each element of the result
// from the elements at the same place of the operands: functions of one operand
// (UnaryF32), of two (BinaryF32, with broadcasting by a kernel.Nest),
// predicates, Where, conversions between element types (Cast), and chains of
// functions that read and write memory once (Chain). Which functions there are
// is declared in package kernel (kernel.UnaryOp, kernel.BinaryOp,
// kernel.PredicateOp).
//
//	elementwise.UnaryF32(machine.Best(), kernel.Exp, dst, src, 0, 0)
//
// The other families are made of the functions that compute one row: UnaryRow,
// BinaryRowVV, BinaryRowVS and StreamRow.
//
// The caller owns all slices. The result may be an operand where the function's
// comment says so. Any number of goroutines may compute different ranges of
// elements of one result.
package elementwise
