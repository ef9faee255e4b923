package exec

import (
	"maps"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/plan"
)

// Proof returns the figures that the checker has found for the executable. They
// are known of one that was compiled with [Options.Capacity].
func (e *Executable) Proof() check.Figures { return e.proof }

// Unpromised lists the values whose size depends on data and that nothing
// bounds.
func (e *Executable) Unpromised() ([]plan.Unpromised, error) {
	if len(e.dynamic) == 0 {
		return nil, nil
	}
	d, err := e.Plan()
	if err != nil {
		return nil, err
	}
	return d.Unpromised, nil
}

// Yield leaves the tasks that a runner of the executable would use to the next
// instance of the structure. Runners can be made all the same.
func (e *Executable) Yield() {
	if ts := e.tasks.Swap(nil); ts != nil {
		e.structure.yield(ts)
	}
}

// Holdings are the bytes of weights that any of several executables of a model
// reads: of each weight its own bytes, unless all of them unload it, and every
// form that kernels of one of them read. Constants that a program has alone,
// because they depend on sizes, count where they are the most. The zero
// Holdings are of no executable.
type Holdings struct {
	own    map[string]int64 // of weights, by name
	loaded map[string]bool  // those that some executable does not unload
	panels map[panel]int64
	local  int64
	seen   map[*packing]bool
}

// panel names a part of a weight in a form.
type panel struct {
	weight, form string
	offset, size int64
}

// Add adds the weights of an executable.
func (h *Holdings) Add(e *Executable) {
	if h.seen == nil {
		h.own, h.loaded, h.panels, h.seen = map[string]int64{}, map[string]bool{}, map[panel]int64{}, map[*packing]bool{}
	}
	store, known := e.structure.options.Store, h.seen[e.packing]
	h.seen[e.packing] = true
	unloaded := map[int]bool{}
	for _, w := range e.packing.report {
		unloaded[w.ID] = w.Unloaded > 0
	}
	local := int64(0)
	for _, v := range e.structure.program.Weights {
		size, _ := e.types.Of(v).Bytes()
		if store == nil || !store.Has(v) {
			local += int64(size)
			continue
		}
		if known {
			continue
		}
		h.own[v.Name] = int64(size)
		h.loaded[v.Name] = h.loaded[v.Name] || !unloaded[v.ID]
		for _, x := range e.packing.panels[v.ID] {
			h.panels[panel{v.Name, x.Form, x.Offset, x.Size}] = int64(x.Bytes)
		}
	}
	h.local = max(h.local, local)
}

// Bytes returns the sum.
func (h *Holdings) Bytes() int64 {
	sum := h.local
	for name, size := range h.own {
		if h.loaded[name] {
			sum += size
		}
	}
	for size := range maps.Values(h.panels) {
		sum += size
	}
	return sum
}
