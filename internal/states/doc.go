// Package states rewrites programs that hand values from run to run, such as
// the keys and values of a decoder, so that each stays in one buffer.
//
// A state is an input and the output that is the input of the next run. Where
// the program appends rows to it, by concat or attention with past keys,
// [Rewrite] makes the input a buffer with a capacity, into which the new rows
// are written behind those that are there:
//
//	present = concat(past, new)
//	next    = tensor_scatter(buffer, new, length);  present = slice(next, 0, length + new)
//
// How many rows there are is an input of the new program, as a value; where the
// program reads sizes of the past, as the size of an input without elements
// too. Attention reads the rows where they lie.
//
// In a branch of which one region has a past, the rows are written in both. A
// window that the program writes down, the last rows of past and new ones,
// becomes shift(past, new).
//
// [RewriteBlocks] makes the inputs pools of blocks instead, in which the rows
// of many sequences lie by a table. Attention reads them there; for any other
// call the rows of a run's sequences are gathered.
//
// The package holds no memory. A program that is rewritten belongs to one
// goroutine.
package states
