// Package ir represents programs over tensors in SSA form. A model file is read
// into one, passes rewrite it, and it is planned and run.
//
//	b := ir.NewBuilder("step", op.Builtin())
//	x, w := b.Param("x", typ), b.Weight("w", typ)
//	b.Return(b.Call("matmul", nil, x, w))
//	p, err := b.Build()
//	p, err = ir.Parse(p.String(), op.Builtin()) // the same program
//
// A [Program] is a [Block] of [Call]s in execution order. Every [Value] is
// defined once: by a call, as a parameter, or as a weight, which is a name and
// a type; its bytes are in a [Weights] table outside the program. A call may
// have nested blocks (regions), which see the values around them. An [Operand]
// that is donated is given up: the call is its last use, and the result that
// the operator's alias rules name may lie in its bytes.
//
// [NewBuilder] builds a program in Go, [Parse] reads one from text,
// [Program.String] writes it. [Infer] runs the shape rules again after types
// have changed, [Functionalize] makes a program pure that writes values,
// [AliasesOf] says which values may share bytes, [Verify] checks the numbered
// invariants of a program at the head of verify.go, and an [Interpreter] runs
// it as a reference, without optimisations.
//
// # The text form
//
//	program = "func" "@" name "(" [ param { "," param } ] ")"
//	          [ "->" "(" [ type { "," type } ] ")" ]
//	          "{" { weight } body "}" .
//	param   = [ "donate" ] "%" name ":" type .
//	weight  = "weight" "@" name ":" type .
//	body    = { call } "return" [ value { "," value } ] .
//	call    = [ result { "," result } "=" ] op
//	          "(" [ operand { "," operand } ] ")" { region } [ attrs ] [ string ] .
//	result  = "%" name [ ":" type ] | "write" value | "_" .
//	operand = [ "donate" ] [ "view" ] value | "_" .
//	value   = "%" name | "@" name .
//	region  = [ "(" param { "," param } ")" ] "{" body "}" .
//	attrs   = "{" attr { "," attr } "}" .
//	attr    = word "=" ( scalar | "[" [ scalar { "," scalar } ] "]" ) .
//	scalar  = number | string | word .
//	type    = word "[" [ dim { "," dim } ] "]" | word "[" "..." "]" .
//	dim     = digits | word | string | "?" .
//	op      = word .
//	name    = word | string .
//
// A word is one or more of the letters A to Z and a to z, digits, "_" and
// "."; names of other characters are strings, which are written as in Go:
// %"layer 1/add". A comment runs from "//" to the end of the line. White
// space, line ends included, only separates.
//
// A value that a call defines is written %x, a weight @w; the two share one set
// of names, and a name is used once in the whole program. "_" stands for an
// absent operand and for a result that is not wanted. The string after a call
// is the name of the node in the file that it was read from. Shapes are those
// of package shape: sizes, symbols, "?" for an unknown size; "[...]" is a
// shape of unknown rank. How an attribute reads follows from the kind that
// its operator declares: 2, 0.5 (also inf, -inf, nan), "text", f32, and lists
// of the first three.
//
// Types of results may be left out: Parse infers them with the shape rules.
// One that is present must agree with the shape rule in every size that both
// contain, and adds the sizes that the rule cannot determine. For example:
//
//	func @step(%x: f32[1,8], donate %cache: f32[16,8]) -> (f32[16,8]) {
//	  weight @w: f32[8,8]
//	  %k: f32[1,8] = matmul(%x, @w) "layers.0/k"
//	  %next: f32[16,8] = put(donate %cache, %k) {offset = 3}
//	  return %next
//	}
//
// # Statements that write values
//
// A text may also say what is written where, for [Functionalize] to make a pure
// program of it. A result "write %x" replaces the elements of %x. The results
// of a call with an operand "view %x" are views of %x: what is written into one
// changes the others. Without the mark a result has elements of its own, of
// every operator. add_(%x, %y) is short for write %x = add(%x, %y): the name of
// an operator and "_", which writes the first operand that its result may
// overwrite by its alias rules. [Builder.Write] and [View] are the same in Go.
//
//	func @step(donate %x: f32[4,8], %row: f32[1,8]) {
//	  weight @sizes: i64[2]
//	  %first, %rest = split(view %x, @sizes)
//	  write %first = copy(%row)
//	  mul_(%rest, %rest)
//	  return %x                      // with all that was written
//	}
//
// [Verify] refuses such a program (V20); tenure.LoadProgram makes it pure.
//
// The printer writes the same text for the same program on every run, and
// prints malformed programs too, with "??" for missing parts. Printed text that
// is parsed and printed again stays the same.
//
// # Memory
//
// Programs are values on the Go heap and hold no tensor bytes. A [Weights]
// table must stay valid while the programs that read it are in use. An
// [Interpreter] writes neither inputs nor weights and returns bytes that the
// caller owns.
//
// # Concurrency
//
// A program that does not change may be read from any goroutine: printed,
// verified, cloned, analysed, interpreted. Changing one needs the caller's own
// synchronisation.
package ir
