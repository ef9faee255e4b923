package ir

import (
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Possible has the facts that are known, before the program runs, of a value
// whose size depends on data.
type Possible struct {
	// Types are static types one of which the value has when the program
	// runs; nil when they are not known.
	Types []op.Type

	// Bytes is the most bytes that the value takes, -1 when that is not known.
	Bytes int64
}

// maxPossible bounds the types of one value, and mostTried the combinations of
// operand types of one call that are tried.
const (
	maxPossible = 8
	mostTried   = 32
)

// PossibleOf finds the possible types and bounds of the values whose size
// depends on data. A branch whose regions return values of two types returns
// one of both; values computed from it have the types that the shape rule
// returns for each. A result of an operator with a bound takes at most that.
// Types must hold (V8 of [Verify]); known returns the bytes of weights and may
// be nil.
func PossibleOf(p *Program, known func(*Value) ([]byte, bool)) Possibles {
	return PossibleFor(p, TypesOf(p), known)
}

// PossibleFor is [PossibleOf] for values of the given types.
func PossibleFor(p *Program, types Types, known func(*Value) ([]byte, bool)) Possibles {
	f := finder{Possibles{types: types}, known}
	if slices.ContainsFunc(types, func(t op.Type) bool { return !t.IsZero() && !t.IsStatic() }) {
		f.block(p.Body)
	}
	return f.Possibles
}

// Possibles has the possible types and bounds of the values of a program whose
// size depends on data.
type Possibles struct {
	types Types
	found []Possible // by ID; nil where nothing is known of any
}

// Of returns the possible types and the bound of a value: no types and -1 bytes
// if nothing is known, or if the value has a static type.
func (p Possibles) Of(v *Value) Possible {
	if p.found == nil {
		return Possible{Bytes: -1}
	}
	return p.found[v.ID]
}

type finder struct {
	Possibles
	known func(*Value) ([]byte, bool)
}

func (f *finder) set(v *Value, p Possible) {
	if f.found == nil {
		f.found = slices.Repeat([]Possible{{Bytes: -1}}, len(f.types))
	}
	f.found[v.ID] = p
}

func (f *finder) block(b *Block) {
	for _, c := range b.Calls {
		for _, r := range c.Regions {
			f.block(r)
		}
		open := slices.ContainsFunc(c.Results, func(v *Value) bool { return v != nil && !f.types.Of(v).IsStatic() })
		switch {
		case !open:
		case c.Op.Branch:
			f.branch(c)
		case len(c.Regions) == 0:
			f.call(c)
		}
	}
}

// of returns the possible types and the bound of any value.
func (f *finder) of(v *Value) Possible {
	if t := f.types.Of(v); t.IsStatic() {
		return Possible{Types: []op.Type{t}, Bytes: bytesOf(t)}
	}
	return f.Of(v)
}

func bytesOf(t op.Type) int64 {
	n, err := t.Bytes()
	if err != nil {
		return -1
	}
	return int64(n)
}

// branch joins the possible values that the regions return.
func (f *finder) branch(c *Call) {
	for i, v := range c.Results {
		if v == nil || f.types.Of(v).IsStatic() {
			continue
		}
		a, b := f.of(c.Regions[0].Results[i]), f.of(c.Regions[1].Results[i])
		if a.Bytes < 0 || b.Bytes < 0 {
			continue
		}
		joined := Possible{Bytes: max(a.Bytes, b.Bytes)}
		if a.Types != nil && b.Types != nil {
			joined.Types = union(a.Types, b.Types...)
		}
		f.set(v, joined)
	}
}

// union adds types to a list; nil when they become too many.
func union(list []op.Type, more ...op.Type) []op.Type {
	list = slices.Clone(list)
	for _, t := range more {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	if len(list) > maxPossible {
		return nil
	}
	return list
}

// call finds the types of the results for each that the operands can have.
func (f *finder) call(c *Call) {
	var results [][]op.Type
	for _, sig := range f.Sigs(c, f.known) {
		largest, ok, err := sig.Largest()
		if err != nil || !ok {
			return
		}
		results = append(results, largest)
	}
	for i, v := range c.Results {
		if v == nil || f.types.Of(v).IsStatic() || len(results) == 0 {
			continue
		}
		p := Possible{Bytes: -1}
		for _, types := range results {
			n := bytesOf(types[i])
			if n < 0 {
				return
			}
			p.Types, p.Bytes = append(p.Types, types[i]), max(p.Bytes, n)
		}
		if p.Types = union(nil, p.Types...); c.Op.Bound != nil {
			p.Types = nil // they are bounds
		}
		f.set(v, p)
	}
}

// Sigs returns the signatures that a call can have when it runs: those of the
// combinations of its operands' possible types that the shape rule accepts. Nil
// means that they are not known, or too many.
func (p Possibles) Sigs(c *Call, known func(*Value) ([]byte, bool)) []*op.Sig {
	var open []*Value
	tries := 1
	for _, a := range c.Args {
		if a.Value == nil || p.types.Of(a.Value).IsStatic() || slices.Contains(open, a.Value) {
			continue
		}
		if tries *= len(p.Of(a.Value).Types); tries == 0 || tries > mostTried {
			return nil
		}
		open = append(open, a.Value)
	}
	var list []*op.Sig
	for try := range tries {
		chosen, rest := map[*Value]op.Type{}, try
		for _, v := range open {
			types := p.Of(v).Types
			chosen[v], rest = types[rest%len(types)], rest/len(types)
		}
		sig := c.sigFor(p.types, known)
		for i, a := range c.Args {
			if t, ok := chosen[a.Value]; ok {
				sig.Args[i] = t
			}
		}
		if c.inferSig(sig) == nil { // otherwise a run that comes to it fails as well
			list = append(list, sig)
		}
	}
	return list
}
