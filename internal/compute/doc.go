// Package compute binds operators to kernels and runs them.
//
// [Bind] turns a call, whose operand and result types are static, into a
// [Task]: a number of tiles that may run in any order and on any worker, each
// 20 to 200 microseconds of work where the call is large enough to be split.
// How a call is split depends on its shapes alone, so that results do not
// depend on the number of threads. A task is bound once per step of a plan and
// run many times; running it allocates nothing. A [Pool] runs a task's tiles on
// a fixed set of workers; [Eval] binds and runs a call at once, on the caller's
// goroutine.
//
// A task runs a [Kernel]: functions, and a record of the facts of the call that
// they need. Binding chooses the functions by the operator, its attributes and
// the element types; sizes only fill the record. [Task.Refill] fills it again
// when the shapes of a call change, in the same memory.
//
// [BindConstants] is Bind for calls some of whose operands never change: the
// task may read those in a [Form] of its own, such as the panels of a matrix
// product, which the caller packs once and shares.
//
// Every operator of [op.Builtin] that computes something has its kernels here,
// one file per family; operators that users bring run their own [op.Def].Kernel
// through the same door. Operators with nested blocks are not tasks: package
// exec runs their blocks.
//
// Errors do not name the call, which callers do in their own words; the
// messages of panics name it.
//
// Operands and results may lie with strides, as boxes of larger buffers, where
// [Strided] says so for a call. Kernels either walk the strides or run on the
// contiguous pieces of the call, one after the other, each of which is a call
// of the same operator with smaller sizes. What a kernel computes does not
// depend on how its operands lie, to the bit.
//
// # Memory
//
// The package owns no tensor memory. A task reads and writes c.In[i].Data and
// c.Out[i].Data as they stand when it is run: the caller may replace them
// between runs. Results may lie in operands' bytes where the operator's alias
// rules allow it. Scratch is the caller's, too: Task.Scratch bytes for each
// worker of the pool, 64-byte aligned, with no promise about their contents.
//
// # Concurrency
//
// One task is run by one goroutine at a time, because its call holds the bytes
// of the run. Different tasks may run at once, also on one pool. Bind, Eval and
// Supported may be called from any goroutine.
package compute
