package tenure

import (
	"fmt"
	"math/rand/v2"
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
	weights  Weights
	shared   *sharing // nil: weights are the process's own
	progress func(Progress)
	outputs  []string // nil: those that the model declares
	states   bool     // kept by a States, or a StatePool
	pairs    []StatePair
	pooled   bool // by a StatePool
	floats   bool // quantised numbers are dequantised and computed as floats
	direct   bool // convolutions are not transformed
}

// WithOperators makes the model use a registry with operators of the caller:
//
//	registry, err := op.Builtin().With(myOperator)
//	m, err := tenure.Load(path, tenure.WithOperators(registry))
func WithOperators(r *op.Registry) Option { return func(o *loadOptions) { o.registry = r } }

// Weights says where a model's weights are stored.
type Weights int

const (
	Mapped     Weights = iota // in pages of the model's file, the default
	Read                      // in memory of the process: the file may be changed or truncated afterwards
	Compressed                // as Mapped, with large matrices of products in about 27 of 32 bits
)

// WithWeights chooses where the weights are stored. If a mapped file is
// truncated, the process is killed, so replace model files by renaming, or
// choose Read.
//
// Compressed encodes the exponents of float32 matrices in fewer bits, without
// loss: results are the same, bit by bit. It makes the weights of products that
// are bound by memory, those of a few rows, smaller by 15 per cent. Loading
// takes longer, and runs take as long or up to some tens of per cent longer.
func WithWeights(w Weights) Option { return func(o *loadOptions) { o.weights = w } }

// WithSharedWeights makes all processes of a user that load the model with this
// option read one copy of its weights. The first process packs weights for the
// kernels and computes constants from others; the rest map the result. Any
// process may end at any time. Weights that are read in place from the model's
// file need no copy. Each process still has its own arenas, and constants that
// depend on the shapes of a run.
//
// A file that is read instead of mapped (by [WithWeights] with Read, or by
// [LoadFS]) is one copy too. The bytes passed to [LoadBytes] stay the caller's.
//
// Equal weights on processors with the same instructions are one copy, even
// from files with other names. Other input shapes may need weights in other
// forms: then processes share those that the same shapes needed in the same
// order. Processes share through the user's folder that package share
// describes, or through another one:
// WithSharedWeights(share.InDir(dir)). Linux only: elsewhere Load fails with
// ErrUnsupported.
func WithSharedWeights(where ...share.Option) Option {
	return func(o *loadOptions) { o.shared = &sharing{where} }
}

// WithOutputs makes the named values the outputs of the model, in this order,
// instead of those that it declares. A name is that of a declared output or of
// any other value of the model's graph, as the file has it: so the values
// between the layers can be seen. Values of the graphs within nodes, such as
// the branches of an If, are not among them.
//
// Nodes that the outputs do not need are not part of the model: they are
// neither computed nor planned, their weights take no memory, and they may have
// operators that are not supported. The inputs stay those of the model. A name
// that no value has is ErrInput, with similar names.
func WithOutputs(names ...string) Option {
	return func(o *loadOptions) { o.outputs = append([]string{}, names...) }
}

// WithFloatQuantised makes the model compute as its file spells it out where it
// dequantises numbers, computes with them and quantises the result. Without it
// such a part of the model computes on the quantised numbers, where there is a
// kernel for that: weights and activations take a quarter of the bytes, and
// results may differ by one quantum. [Model.Notes] lists both kinds of parts.
func WithFloatQuantised() Option { return func(o *loadOptions) { o.floats = true } }

// WithDirectConvolutions makes the model multiply every tap of a convolution.
// Without it, 3x3 convolutions with enough channels and without stride or
// dilation are computed by Winograd's algorithms, which multiply 2.25 or four
// times less often. The weights of these then take 1.8 or four times their own
// bytes (a plan's packed weights say which), and results have other rounding
// errors, of up to about four times the size. An element that is infinite or
// NaN makes NaN of all results of the tiles, of at most 4x4, that read it.
func WithDirectConvolutions() Option { return func(o *loadOptions) { o.direct = true } }

// nilOption is the error of an option that is no function.
func nilOption(of string, i int) error {
	return fmt.Errorf("%s: option %d is nil, want one of the package's", of, i)
}

// SessionOption configures a session.
type SessionOption func(*sessionOptions)

type sessionOptions struct {
	threads       int
	maxConcurrent int
	plans         int
	outputs       memory.Source
	bounds        []bounded
	giveBack      bool
	promise       *promise // for all sizes within the bounds, nil without any
	limits        sizeLimits
	seed          uint64 // of random numbers
	leastMemory   bool
	donated       []string // inputs, for [Model.Plan]
}

// Every thread of a run has scratch, and every run an arena: these bounds keep
// sums of their bytes far from overflow.
const (
	mostThreads    = 1 << 10
	mostConcurrent = 1 << 16
)

// defaultPlans are enough for the sizes of a text that is generated token by
// token with a growing cache, and of most batches. A plan of 100 steps takes
// about 45 KB of the Go heap.
const defaultPlans = 64

func configure(opts []SessionOption) (sessionOptions, error) {
	o := sessionOptions{threads: min(runtime.GOMAXPROCS(0), mostThreads), maxConcurrent: 1, plans: defaultPlans, outputs: memory.Process(memory.IO), limits: defaultLimits, seed: rand.Uint64()}
	for i, f := range opts {
		if f == nil {
			return o, nilOption("session", i)
		}
		f(&o)
	}
	if o.threads > mostThreads {
		return o, fmt.Errorf("threads: got %d, want at most %d", o.threads, mostThreads)
	}
	if o.maxConcurrent > mostConcurrent {
		return o, fmt.Errorf("concurrent runs: got %d, want at most %d", o.maxConcurrent, mostConcurrent)
	}
	return o, nil
}

// WithThreads sets how many workers run a step, the caller's goroutine among
// them: at least 1 and at most 1024, by default GOMAXPROCS. Results do not
// depend on it.
func WithThreads(n int) SessionOption { return func(o *sessionOptions) { o.threads = max(n, 1) } }

// WithMaxConcurrent sets how many runs may be under way at once, each with an
// arena of its own: at least 1, which is the default, and at most 65536.
// Further calls of Run wait.
func WithMaxConcurrent(n int) SessionOption {
	return func(o *sessionOptions) { o.maxConcurrent = max(n, 1) }
}

// WithPlans sets how many plans, one per set of input shapes, the session
// keeps: at least 1, by default 64; the one that was used longest ago leaves
// first. A plan takes a few hundred bytes of the Go heap for each step. It
// holds no arena: a session has one arena per concurrent run, of the size of
// the plan that ran last, or of the promise ([WithUpTo]).
func WithPlans(n int) SessionOption { return func(o *sessionOptions) { o.plans = max(n, 1) } }

// WithOutputsFrom makes the session take the bytes of outputs from src, which
// must outlive its runs; nil stands for the default, the memory of the process.
// There each output of 2 MiB or more gets fresh pages from the system, which
// can cost more than the run; from a [memory.Arena] it gets those of an output
// that was released before. Outputs that come back in a donated input's bytes,
// or that are given with [Into], take none; those whose size depends on data
// take memory of the process.
func WithOutputsFrom(src memory.Source) SessionOption {
	return func(o *sessionOptions) {
		if o.outputs = src; src == nil {
			o.outputs = memory.Process(memory.IO)
		}
	}
}

// WithSeed sets the seed of the random numbers that models draw; a session
// without it has a seed by chance. Sessions on a model with one seed draw the
// same numbers: in their first runs, in their second ones, and so on, on any
// number of threads. Where runs are concurrent, the order in which they begin
// decides. A node of the model that has a seed of its own draws by that, in
// every session. The numbers are the same in all builds on all processors, but
// for the last bits of functions, and may be others in another version.
func WithSeed(seed uint64) SessionOption { return func(o *sessionOptions) { o.seed = seed } }

// WithLeastMemory makes plans put more results into the bytes of operands: also
// those that one thread has to compute there, where several threads would be
// faster, such as transposes and conversions to narrower types. A plan lists in
// Declined what it leaves without this option. Results do not depend on it.
func WithLeastMemory() SessionOption { return func(o *sessionOptions) { o.leastMemory = true } }

// WithDonated makes [Model.Plan] plan for runs to which the named inputs are
// donated. Like such a run, it fails where nothing can be written into the
// bytes of one (ErrNotReusable). Sessions do not read it: each run says what it
// donates.
func WithDonated(names ...string) SessionOption {
	return func(o *sessionOptions) { o.donated = append(o.donated, names...) }
}

// RunOption configures one run, or all runs of a [Binding].
type RunOption func(*runOptions)

type runOptions struct {
	into    []intoOption
	watch   func(c *ir.Call, took time.Duration)
	profile *Profile
}

type intoOption struct {
	name string
	t    *tensor.Tensor
}

// Into makes the run write the named output into t, which must be exclusive and
// have the output's type and shape; t is locked during the run. Run does not
// return this output, since the caller has it already. An input whose bytes the
// output would come back in cannot be donated (ErrNotReusable), unless t is
// that input: then t stays alive, with the output. One to reuse is only given
// up.
//
// The size of an output can depend on data. If its possible types are known, as
// those of a branch whose regions return two shapes, t has one of them: the run
// computes the output in bytes of its own and copies it into t at its end. An
// output of another one of these types is an error then (ErrShape), and the run
// has failed. If they are not known the output cannot be written into a tensor
// (ErrUnsupported).
func Into(name string, t *tensor.Tensor) RunOption {
	return func(o *runOptions) { o.into = append(o.into, intoOption{name, t}) }
}

// WithProfile makes the run add its steps to a profile. nil is none.
func WithProfile(p *Profile) RunOption { return func(o *runOptions) { o.profile = p } }

// Watch shows where the time goes: after every call of the program the run
// tells f which call it was and how long it took. f runs on the goroutine of
// Run, and must not change the call. [WithProfile] collects that and more.
func Watch(f func(c *ir.Call, took time.Duration)) RunOption {
	return func(o *runOptions) { o.watch = f }
}
