// Package symbolic has integer expressions over the sizes of dimensions: sums
// and products of symbols, floor division by a constant, maximum and minimum.
//
// An [Expr] is in a normal form, a polynomial whose variables are symbols,
// quotients, maxima and minima, so that expressions that differ in the order of
// their terms are equal. It is evaluated for sizes ([Expr.Eval]), bounded over
// a [Box] of ranges ([Expr.Bounds]), and printed as people write it:
//
//	seq, past := symbolic.Symbol("seq"), symbolic.Symbol("past")
//	scores := symbolic.Const(48).Mul(seq).Mul(seq.Add(past))
//	fmt.Println(scores) // 48·seq·(past + seq)
//	lo, hi, ok := scores.Bounds(symbolic.Box{"seq": {Lo: 1, Hi: 8}, "past": {Lo: 0, Hi: 7}}) // 48, 5760, true
//
// Bounds are sound: every value of the expression over the box lies within
// them. They are exact where the expression is monotone in each symbol.
//
// A nil *Expr is a number of which nothing is known. Every operation on it, and
// every operation whose result does not fit an int64 or has too many terms,
// returns nil.
//
// Expressions are immutable and may be used by many goroutines.
package symbolic
