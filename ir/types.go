package ir

import "github.com/tenure-go/tenure/op"

// Types are types of the values of a program, by ID: those that the values
// have, or those that they take for inputs of other sizes. The entries of IDs
// without a value are zero.
type Types []op.Type

// TypesOf returns the types that the values of the program have.
func TypesOf(p *Program) Types {
	t := make(Types, p.NumIDs())
	add := func(list []*Value) {
		for _, v := range list {
			if v != nil {
				t[v.ID] = v.Type
			}
		}
	}
	add(p.Body.Params)
	add(p.Weights)
	p.Walk(func(_ *Block, c *Call) {
		add(c.Results)
		for _, r := range c.Regions {
			add(r.Params)
		}
	})
	return t
}

// Of returns the type of a value.
func (t Types) Of(v *Value) op.Type { return t[v.ID] }

// Signatures are the signatures of the calls of a program, by their number, for
// types that [Signatures.Set] exchanges without making new ones. They may be
// read from many goroutines, but not while Set runs.
type Signatures struct {
	index *Index
	known func(*Value) ([]byte, bool)
	sigs  []op.Sig
	ids   []int     // of operands, results and values that regions return, call by call; 0 for an absent one
	types []op.Type // of those; the signatures hold parts of it

	ends    []int  // of each call, in ids
	changed []bool // of each call: whether the last Set has exchanged a type
	open    int    // how many of types have no size
}

// NewSignatures makes the signatures of the calls of an index. They have no
// types before Set.
func NewSignatures(x *Index) *Signatures {
	s := &Signatures{index: x, sigs: make([]op.Sig, len(x.Calls)), ends: make([]int, len(x.Calls)), changed: make([]bool, len(x.Calls))}
	for k, c := range x.Calls {
		for _, a := range c.Args {
			s.ids = append(s.ids, idOf(a.Value))
		}
		for _, list := range c.returned() {
			for _, v := range list {
				s.ids = append(s.ids, idOf(v))
			}
		}
		s.ends[k] = len(s.ids)
	}
	s.types = make([]op.Type, len(s.ids))
	rest := s.types
	take := func(n int) []op.Type {
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	for k, c := range x.Calls {
		sig := &s.sigs[k]
		*sig = op.Sig{Def: c.Op, Attrs: c.Attrs, Args: take(len(c.Args)), Results: take(len(c.Results))}
		for _, r := range c.Regions {
			sig.Regions = append(sig.Regions, take(len(r.Results)))
		}
		call := c.Call
		sig.Known = func(arg int) ([]byte, bool) {
			if s.known == nil || arg >= len(call.Args) || call.Args[arg].Value == nil {
				return nil, false
			}
			return s.known(call.Args[arg].Value)
		}
	}
	return s
}

// returned lists the results of the call and of its regions.
func (c *Call) returned() [][]*Value {
	lists := [][]*Value{c.Results}
	for _, r := range c.Regions {
		lists = append(lists, r.Results)
	}
	return lists
}

func idOf(v *Value) int {
	if v == nil {
		return 0
	}
	return v.ID
}

// Set makes the signatures those of the given types. known returns the bytes of
// weights; it may be nil.
func (s *Signatures) Set(types Types, known func(*Value) ([]byte, bool)) {
	s.known = known
	i := 0
	for k, end := range s.ends {
		changed := false
		for ; i < end; i++ {
			if t := types[s.ids[i]]; s.types[i] != t {
				s.open += isOpen(t) - isOpen(s.types[i])
				s.types[i], changed = t, true
			}
		}
		s.changed[k] = changed
		if c := &s.index.Calls[k]; c.Op.Loop && len(c.Regions) == 1 {
			s.sigs[k].Endless = c.isEndless(known)
		}
	}
}

// isOpen is 1 for a type without a size, and 0 for others and for none.
func isOpen(t op.Type) int {
	if t.IsZero() || t.IsStatic() {
		return 0
	}
	return 1
}

// Possible is [PossibleFor] for the types of the last Set, which are passed
// again.
func (s *Signatures) Possible(p *Program, types Types) Possibles {
	if s.open == 0 {
		return Possibles{types: types} // no call has a result without a size
	}
	return PossibleFor(p, types, s.known)
}

// Changed reports whether the last Set has exchanged a type of call k.
func (s *Signatures) Changed(k int) bool { return s.changed[k] }

// Of returns the signature of call k, which the next Set changes.
func (s *Signatures) Of(k int) *op.Sig { return &s.sigs[k] }

// With returns a copy of the program whose values have the given types.
func (p *Program) With(types Types) *Program {
	c := p.Clone()
	set := func(list []*Value) {
		for _, v := range list {
			if v != nil {
				v.Type = types.Of(v)
			}
		}
	}
	set(c.Body.Params)
	set(c.Weights)
	c.Walk(func(_ *Block, call *Call) {
		set(call.Results)
		for _, r := range call.Regions {
			set(r.Params)
		}
	})
	return c
}
