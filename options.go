package tenure

import (
	"runtime"
	"time"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// Option configures how a model is loaded.
type Option func(*loadOptions)

type loadOptions struct {
	registry *op.Registry
	read     bool
	shared   *sharing // nil: weights are the process's own
}

// WithOperators makes the model use a registry with operators of the caller:
//
//	registry, err := op.Builtin().With(myOperator)
//	m, err := tenure.Load(path, tenure.WithOperators(registry))
func WithOperators(r *op.Registry) Option { return func(o *loadOptions) { o.registry = r } }

// Weights says where a model's weights are held.
type Weights int

const (
	Mapped Weights = iota // in pages of the model's file, the default
	Read                  // in memory of the process: the file may be changed or truncated afterwards
)

// WithWeights chooses where the weights are held. A mapped file that somebody
// truncates kills the process, so replace model files by renaming, or choose
// Read.
func WithWeights(w Weights) Option { return func(o *loadOptions) { o.read = w == Read } }

// WithSharedWeights makes the model read one copy of its weights with all
// other processes of the user that load it so: what each would have to make
// for itself, weights packed for the kernels and constants folded out of
// others, is made by the first and mapped by the rest, however they end. What
// is read where it lies in the model's file needs no copy. A process's own are
// the arenas of its sessions, and constants that depend on the shapes of a run.
//
// Where a file is read and not mapped, by [WithWeights] and Read or by
// [LoadFS], its bytes are one copy too; those that [LoadBytes] gets stay the
// caller's.
//
// Equal weights on processors of the same level are one copy, whatever the
// file is called. Models for other input shapes may need other panels: then
// the processes share what was needed by the same shapes in the same order.
// Processes meet in the user's folder that package share describes, or in
// another: WithSharedWeights(share.InDir(dir)). Linux only: elsewhere Load
// fails with ErrUnsupported.
func WithSharedWeights(where ...share.Option) Option {
	return func(o *loadOptions) { o.shared = &sharing{where} }
}

// SessionOption configures a session.
type SessionOption func(*sessionOptions)

type sessionOptions struct {
	threads       int
	maxConcurrent int
	plans         int
	outputs       memory.Source
}

func defaultSessionOptions() sessionOptions {
	return sessionOptions{threads: runtime.GOMAXPROCS(0), maxConcurrent: 1, plans: 8}
}

// WithThreads sets how many workers run a step, the caller's goroutine among
// them. The default is GOMAXPROCS. Results do not depend on it.
func WithThreads(n int) SessionOption { return func(o *sessionOptions) { o.threads = max(n, 1) } }

// WithMaxConcurrent sets how many runs may be under way at once, each with an
// arena of its own. The default is 1; further calls of Run wait.
func WithMaxConcurrent(n int) SessionOption {
	return func(o *sessionOptions) { o.maxConcurrent = max(n, 1) }
}

// WithPlans sets how many plans, one per set of input shapes, the session
// keeps. The default is 8; the one that was used longest ago leaves first.
// Plans hold no arena: a session has one arena per concurrent run, of the size
// of the plan that ran last.
func WithPlans(n int) SessionOption { return func(o *sessionOptions) { o.plans = max(n, 1) } }

// WithOutputsFrom makes the session take the bytes of outputs from src, which
// must outlive its runs. By default each output has fresh pages from the
// system, which cost more than some runs; from a [memory.Arena] it has those of
// an output that was released. Outputs that come back in a donated input's
// bytes, or are given with [Into], take none.
func WithOutputsFrom(src memory.Source) SessionOption {
	return func(o *sessionOptions) { o.outputs = src }
}

// RunOption configures one run.
type RunOption func(*runOptions)

type runOptions struct {
	into  []intoOption
	watch func(c *ir.Call, took time.Duration)
}

type intoOption struct {
	name string
	t    *tensor.Tensor
}

// Into makes the run write the named output into t, which must be exclusive
// and of the output's type; it is locked while the run is under way. The
// output is not in the result of Run: the caller has it already.
func Into(name string, t *tensor.Tensor) RunOption {
	return func(o *runOptions) { o.into = append(o.into, intoOption{name, t}) }
}

// Watch makes the run tell f about every call of its program that it ran, in
// order, and how long it took: where the time goes. f is called on the run's
// goroutine between two calls, and must not change the call.
func Watch(f func(c *ir.Call, took time.Duration)) RunOption {
	return func(o *runOptions) { o.watch = f }
}
