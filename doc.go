// Package tenure loads ONNX models and runs them in memory whose size is
// known before the run.
//
//	m, err := tenure.Load("model.onnx")          // mapped, compiled once
//	defer m.Close()
//	s, err := m.NewSession()                     // owns the arenas of its runs
//	defer s.Close()
//	x, err := tensor.Of(pixels, 1, 1, 8, 8)      // off-heap, released by hand
//	defer x.Release()
//	out, err := s.Run(ctx, tenure.Inputs{"image": x})
//	defer out.Release()
//	y, err := out.Get("probabilities")
//	p, err := tensor.Read[float32](y)            // p.Data is a []float32
//	defer p.Release()
//
// For each set of input shapes a session makes a plan: where every value of
// the program lies in one arena, with a figure for every byte, proved before
// it is used. [Session.Plan] gives it before the run; the run takes what the
// plan says, the first time and the thousandth.
//
// [Model.Inputs] and [Model.Outputs] say what a run takes and gives, with
// symbols for sizes that are open, and [Model.Metadata] what the file says about
// the model.
//
// # Map of the module
//
// The memory side: dtype and shape (what a tensor is), memory (buffers and
// who holds them), tensor (handles; tensor/npy and tensor/safetensors for
// files), dlpack (exchange with other libraries; dlpack/capi calls C), share
// (exchange with other processes). The program side: op (the operator table),
// ir (programs, as text too), onnx (reads files), pass (rewrites), plan
// (places values; plan/solve finds a plan, plan/check proves it, plan/page shows it). They meet in
// compute (kernels), exec (runs a plan) and eager (operations on tensors,
// without a model). The command is cmd/tenure; cmd/tenurevet checks programs
// that use tensors, by package vet.
//
// Programs need this package and tensor; most of the others are here to be
// read, and for those who build on them.
//
// # Memory
//
// A model holds its weights, mapped from the file where they are aligned; a
// session holds an arena per concurrent run. Inputs stay the caller's unless
// they are donated ([tensor.Tensor.Donate]) or reused; outputs are the
// caller's, each with bytes of its own.
//
// # Errors
//
// Faults of input are errors that say what was got and what was wanted; they
// match the values below. [ErrInput] tells what a caller got wrong about the
// model from everything else.
//
// # Concurrency
//
// Models and sessions are safe for concurrent use. A session runs
// [WithMaxConcurrent] calls at a time, one by default; others wait.
package tenure
