package tenure

import "github.com/tenure-go/tenure/internal/weights"

// Stage is a part of preparing a model that takes a while if the model is
// large.
type Stage string

const (
	ReadingFile    Stage = weights.ReadingFile    // the model's file or one of its external data, if weights are [Read]
	PackingWeights Stage = weights.PackingWeights // for the kernels, before the first run of a set of input shapes
)

// Progress says how far a stage is.
type Progress struct {
	Stage       Stage
	Done, Total int64 // in bytes; the stage ends when they are equal
}

// WithProgress has f called while the model is loaded and while its weights are
// packed, each stage from nothing done to everything. Calls for one model come
// one after the other, from the goroutine that loads it or that waits for a
// plan. f must not use the model, and holds the work up for as long as it
// takes.
func WithProgress(f func(Progress)) Option { return func(o *loadOptions) { o.progress = f } }

// watched returns the function that a store reports to.
func (o *loadOptions) watched() func(stage string, done, total int64) {
	if o.progress == nil {
		return nil
	}
	return func(stage string, done, total int64) { o.progress(Progress{Stage(stage), done, total}) }
}
