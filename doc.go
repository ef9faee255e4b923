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
// For each set of input shapes a session makes a plan, which lists a place in
// one arena for every value of the program and accounts for every byte. It is
// proved before it is used. [Session.Plan] returns it before the run; the run
// takes the memory that the plan says, the first time and the thousandth.
// [Session.Prepare] does before the first run what only first runs do, and a
// [Profile] shows where the time goes.
//
// [Session.Run] takes inputs and returns outputs by name, in maps.
// [Session.RunInto] and [Binding.Run] do so by position, and write into the
// tensors of earlier runs: they allocate nothing. A [States] keeps what a
// model hands from run to run, such as a decoder's keys and values, in buffers
// of which a run writes the new rows alone.
//
// # Models
//
// [Load] reads a file, [LoadBytes] and [LoadFS] read from memory or a file
// system, and [LoadProgram] takes a program of package ir. [Model.Inputs] and
// [Model.Outputs] describe the inputs and outputs of a run, with symbols for
// open sizes; [WithOutputs] chooses among all values of the model;
// [Model.Metadata] and [Describe] return the file's own description.
//
// # Map of the module
//
// Memory: dtype and shape (the types of tensors), memory (buffers and their
// holders), tensor (handles; tensor/npy, tensor/safetensors and tensor/picture
// for files), dlpack (exchange with other libraries; dlpack/capi calls C),
// share (exchange with other processes). Programs: op (the operator table), ir
// (programs, as text too), plan (the document that a run is executed from;
// plan/page shows it). Both: this package, and eager (operations on tensors,
// without a model). These are the promised packages; ARCHITECTURE.md has the
// list, and the map of the compiler behind them. Package cuda, which brings the
// memory of CUDA devices, may still change. The command is cmd/tenure, with
// CUDA devices cmd/tenure-cuda; cmd/tenurevet checks programs that use tensors,
// by package vet.
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
// Invalid input is an error of the form "got X, want Y" that matches one of the
// values below. [ErrInput] separates the caller's mistakes about the model from
// all other errors.
//
// # Concurrency
//
// Models and sessions are safe for concurrent use. A session runs
// [WithMaxConcurrent] calls at a time, one by default; others wait. A [Binding]
// and a [States] serve one call at a time each.
package tenure
