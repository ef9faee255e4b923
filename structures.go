package tenure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
)

// Structures says how a model's final programs were made. The passes run once
// for each structure; other sizes, and other values of inputs that decide
// sizes, that they would treat alike are instances of it.
type Structures struct {
	Kept      int   // structures that are kept
	Bytes     int64 // that they take on the Go heap, about
	Compiled  int   // sets of sizes, and of values that decide sizes, that programs were made for
	Instances int   // of these, how many are instances of a structure that was there
	Evictions int   // structures that were dropped for others

	// Pinned counts the programs that are for their sizes alone, by the reason.
	Pinned map[string]int

	// Split counts the structures but the first one, by what kept their sizes
	// from being an instance of the structure that was used last: a kind of
	// guard, see docs/lengths.md. It begins with "value of an input: " where
	// the sizes were those of the instance before, and other values of inputs
	// made another program.
	Split map[string]int
}

const (
	mostStructures      = 8
	mostStructuresBytes = 32 << 20

	mostStaying = 64 // further ones are not kept: their sizes have programs of their own
)

// structures are kept by a model and shared by its sessions, or kept for the
// promise of a session alone. Model.compiling
// guards the list and its contents, Model.mu the figures.
type structures struct {
	list    []*structure // the one used last first
	refusal string       // why the first one of the list had no instance for the last target, "" if the list was empty
	figures Structures
	stay    bool // none is dropped for others: those of a promise, see mostStaying
}

// structure is a final program for many sizes, and its first executable, for
// each way in which sessions run it.
type structure struct {
	*pass.Structure
	donated     []bool
	leastMemory bool
	exes        []optioned
}

type optioned struct {
	threads, maxConcurrent int
	*exec.Executable
}

// Structures returns how the final programs of the model were made so far.
func (m *Model) Structures() Structures {
	if m.none() {
		return Structures{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.structures.figures
	f.Pinned, f.Split = maps.Clone(f.Pinned), maps.Clone(f.Split)
	return f
}

// instance makes the executable for a target of a structure that is kept, and
// says which inputs' values it is made for. It is nil where none holds for the
// target's sizes and values.
func (m *Model) instance(ctx context.Context, t target, o sessionOptions) (exe *exec.Executable, frozen []int, err error) {
	s := m.structuresFor(t, o)
	s.refusal = ""
	refuse := func(i int, why string) {
		if i == 0 {
			s.refusal = why
		}
	}
	for i, st := range s.list {
		if !slices.Equal(st.donated, t.donations()) {
			refuse(i, "inputs that are given up")
			continue
		}
		if st.leastMemory != t.leastMemory {
			refuse(i, "the least memory")
			continue
		}
		table := &weights.Overlay{Base: st.Constants()}
		types := st.Types(t.types, t.value, table)
		if types == nil {
			refuse(i, st.Refusal())
			continue
		}
		if invariant.Enabled {
			m.checkInstance(t, st.Program().With(types), table)
		}
		exe, err := m.instantiate(ctx, st, types, table, o)
		if errors.Is(err, exec.ErrStructure) {
			refuse(i, "plan")
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if o.promise != nil && !o.promise.holds(exe) {
			refuse(i, "promise")
			continue // another one was there first, of which it takes less
		}
		copy(s.list[1:i+1], s.list[:i])
		s.list[0] = st
		m.mu.Lock()
		s.figures.Compiled++
		s.figures.Instances++
		m.mu.Unlock()
		return exe, st.Deciding(), nil
	}
	return nil, nil, nil
}

// instantiate makes the executable of a structure for values of these types:
// another one of those that were compiled for sessions of these options, or the
// first one.
func (m *Model) instantiate(ctx context.Context, st *structure, types ir.Types, table ir.Weights, o sessionOptions) (*exec.Executable, error) {
	for _, known := range st.exes {
		if known.threads == o.threads && known.maxConcurrent == o.maxConcurrent {
			return known.Instance(ctx, types, table)
		}
	}
	exe, err := exec.Compile(ctx, st.Program().With(types), table, m.execOptions(o, st.Declined(), st.Copies()))
	if err == nil {
		st.compiled(exe, o)
	}
	return exe, err
}

// compiled notes the first executable for sessions of these options.
func (st *structure) compiled(exe *exec.Executable, o sessionOptions) {
	const most = 4
	st.exes = append(st.exes, optioned{o.threads, o.maxConcurrent, exe})
	if len(st.exes) > most {
		st.exes = slices.Delete(st.exes, 0, 1)
	}
}

// keep adds the structure of a program that was specialised with a record, and
// its executable.
func (m *Model) keep(t target, c *specialised, exe *exec.Executable, o sessionOptions) {
	st, reason := c.Structure()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.structuresFor(t, o)
	if s.stay && len(s.list) == mostStaying {
		st, reason = nil, fmt.Sprintf("more than %d structures", mostStaying)
	}
	if s.figures.Pinned == nil {
		s.figures.Pinned, s.figures.Split = map[string]int{}, map[string]int{}
	}
	s.figures.Compiled++
	if st == nil {
		s.figures.Pinned[reason]++
		return
	}
	if s.refusal != "" {
		s.figures.Split[s.refusal]++
	}
	kept := &structure{Structure: st, donated: slices.Clone(t.donations()), leastMemory: t.leastMemory}
	kept.compiled(exe, o)
	s.list = slices.Insert(s.list, 0, kept)
	s.figures.Bytes += st.Bytes()
	for !s.stay && len(s.list) > 1 && (len(s.list) > mostStructures || s.figures.Bytes > mostStructuresBytes) {
		last := len(s.list) - 1
		s.figures.Bytes -= s.list[last].Bytes()
		s.list[last] = nil
		s.list = s.list[:last]
		s.figures.Evictions++
	}
	s.figures.Kept = len(s.list)
}

// structuresFor returns where the structures of a target are kept.
func (m *Model) structuresFor(t target, o sessionOptions) *structures {
	switch p := o.promise; {
	case p == nil:
		return &m.structures
	case t.donations() == nil:
		return &p.structures
	default:
		return &p.givenUp
	}
}

// donations says which inputs are donated, nil if none is.
func (t target) donations() []bool {
	if slices.Contains(t.donated, true) {
		return t.donated
	}
	return nil
}
