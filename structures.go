package tenure

import (
	"slices"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
)

// Structures says how a model's final programs were made. The passes run once
// for each structure; other sizes that they would treat alike are instances of
// it.
type Structures struct {
	Kept      int   // structures that are kept
	Bytes     int64 // that they take on the Go heap, about
	Compiled  int   // sets of sizes that programs were made for
	Instances int   // of these, how many are instances of a structure that was there
	Evictions int   // structures that were dropped for others

	// Pinned counts the programs that are for their sizes alone, by the reason.
	Pinned map[string]int
}

const (
	mostStructures      = 8
	mostStructuresBytes = 32 << 20
)

// structures are kept by a model and shared by its sessions. Model.compiling
// guards the list and what is in it, Model.mu the figures.
type structures struct {
	list    []*structure // the one used last first
	figures Structures
}

type structure struct {
	*pass.Structure
	donated []bool
}

// Structures returns how the final programs of the model were made so far.
func (m *Model) Structures() Structures {
	if m.none() {
		return Structures{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.structures.figures
	f.Pinned = map[string]int{}
	for reason, n := range m.structures.figures.Pinned {
		f.Pinned[reason] = n
	}
	return f
}

// instance returns the final program for a target if a structure has it.
func (m *Model) instance(t target) *specialised {
	s := &m.structures
	for i, st := range s.list {
		if !slices.Equal(st.donated, t.donations()) {
			continue
		}
		table := &weights.Overlay{Base: st.Constants()}
		in := st.Instance(t.types, table)
		if in == nil {
			continue
		}
		copy(s.list[1:i+1], s.list[:i])
		s.list[0] = st
		m.mu.Lock()
		s.figures.Compiled++
		s.figures.Instances++
		m.mu.Unlock()
		return &specialised{Context: &pass.Context{Program: in.Program, Constants: table, Declined: in.Declined, Copies: in.Copies}}
	}
	return nil
}

// keep adds the structure of a program that was specialised with a record.
func (m *Model) keep(t target, c *specialised) {
	st, reason := c.Structure()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.structures
	s.figures.Compiled++
	if st == nil {
		if s.figures.Pinned == nil {
			s.figures.Pinned = map[string]int{}
		}
		s.figures.Pinned[reason]++
		return
	}
	s.list = slices.Insert(s.list, 0, &structure{st, slices.Clone(t.donations())})
	s.figures.Bytes += st.Bytes()
	for len(s.list) > 1 && (len(s.list) > mostStructures || s.figures.Bytes > mostStructuresBytes) {
		last := len(s.list) - 1
		s.figures.Bytes -= s.list[last].Bytes()
		s.list[last] = nil
		s.list = s.list[:last]
		s.figures.Evictions++
	}
	s.figures.Kept = len(s.list)
}

// donations says which inputs are donated, nil if none is.
func (t target) donations() []bool {
	if slices.Contains(t.donated, true) {
		return t.donated
	}
	return nil
}
