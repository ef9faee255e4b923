package ir

import (
	"strconv"

	"github.com/tenure-go/tenure/op"
)

// Program is one function over tensors: parameters, a body of calls in
// execution order, results, and the weights that it reads by name.
type Program struct {
	Name    string
	Body    *Block // Body.Params are the program's parameters
	Weights []*Value

	lastID   int
	lastName int // the largest number that may be the name of a value
}

// Block is a list of calls in execution order with parameters and results:
// the body of a program, or a region nested in a call. A nested block sees
// the values of the blocks around it.
type Block struct {
	Params  []*Value
	Calls   []*Call
	Results []*Value
}

// ValueKind says where a value comes from.
type ValueKind uint8

const (
	Result ValueKind = iota // of a call
	Param                   // of the program or of a nested block
	Weight                  // read by name; its bytes are in a table outside the program
)

// Value is one SSA value.
type Value struct {
	ID   int    // unique in the program, from 1 to below [Program.NumIDs]
	Name string // as printed, without % or @; unique in the program
	Type op.Type
	Kind ValueKind

	Def   *Call // the call that defines it; nil for parameters and weights
	Index int   // which result of Def, or which parameter of its block

	// Donated marks a parameter that the program may consume: its bytes may
	// be overwritten and may come back as a result.
	Donated bool
}

// Operand is one use of a value by a call. The zero Operand is an absent
// optional operand.
type Operand struct {
	Value *Value

	// Donate gives up the value: the call is its last use, and the result
	// that the operator's alias rules name may lie in its bytes.
	Donate bool

	// View makes the results views of the value: what is written into one
	// changes the others. It is for programs that [Functionalize] makes pure.
	View bool
}

// Call applies an operator to operands.
type Call struct {
	Op      *op.Def
	Args    []Operand
	Attrs   op.Attrs
	Results []*Value // a nil entry is an optional result that is not wanted
	Regions []*Block
	Node    string // where it comes from: the name of the node in the model file
	Line    int    // where it comes from: the line of the text, from 1; 0 if it was not parsed

	// Writes, which may be nil, has an entry per result: the value whose
	// elements the result replaces, nil for none. It is for programs that
	// [Functionalize] makes pure.
	Writes []*Value
}

// Sig returns the call as the operator table sees it. known returns the bytes
// of weights; it may be nil.
func (c *Call) Sig(known func(*Value) ([]byte, bool)) *op.Sig { return c.sigFor(nil, known) }

// sigFor is Sig for values of the given types, nil for those that they have.
func (c *Call) sigFor(types Types, known func(*Value) ([]byte, bool)) *op.Sig {
	typeOf := func(v *Value) op.Type {
		switch {
		case v == nil:
			return op.Type{}
		case types != nil:
			return types.Of(v)
		}
		return v.Type
	}
	s := &op.Sig{Def: c.Op, Attrs: c.Attrs, Args: make([]op.Type, len(c.Args)), Results: make([]op.Type, len(c.Results))}
	for i, a := range c.Args {
		s.Args[i] = typeOf(a.Value)
	}
	for i, r := range c.Results {
		s.Results[i] = typeOf(r)
	}
	for _, b := range c.Regions {
		list := make([]op.Type, len(b.Results))
		for i, r := range b.Results {
			list[i] = typeOf(r)
		}
		s.Regions = append(s.Regions, list)
	}
	if c.Op.Loop && len(c.Regions) == 1 {
		s.Endless = c.isEndless(known)
	}
	if known != nil {
		s.Known = func(arg int) ([]byte, bool) {
			if arg >= len(c.Args) || c.Args[arg].Value == nil {
				return nil, false
			}
			return known(c.Args[arg].Value)
		}
	}
	return s
}

// Where names the call in errors: by its node in the model file and its
// operator, or by its text where it comes from no node.
func (c *Call) Where() string {
	if c.Node != "" {
		return op.Where(c.Op.Name, c.Node)
	}
	return c.String()
}

// String returns the value as printed: "%x" or "@w".
func (v *Value) String() string {
	if v == nil {
		return "_"
	}
	if v.Kind == Weight {
		return "@" + quoteName(v.Name)
	}
	return "%" + quoteName(v.Name)
}

// NewValue makes a value with an unused ID. It belongs to the program once a
// block, a call or the weight list holds it.
func (p *Program) NewValue(kind ValueKind, name string, t op.Type) *Value {
	p.lastID++
	p.lastName++
	if name == "" {
		name = strconv.Itoa(p.lastName)
	} else if n, err := strconv.ParseInt(name, 10, 31); err == nil {
		p.lastName = max(p.lastName, int(n)) // later values without a name do not take this one
	}
	return &Value{ID: p.lastID, Name: name, Type: t, Kind: kind}
}

// NumIDs returns the length of a table with an entry for every ID. IDs are
// given one after the other, also to values that the program has no longer.
func (p *Program) NumIDs() int { return p.lastID + 1 }

// Walk calls f for every call in execution order, a call before those in its
// regions. This preorder numbers the calls in plans.
func (p *Program) Walk(f func(*Block, *Call)) { walk(p.Body, f) }

func walk(b *Block, f func(*Block, *Call)) {
	for _, c := range b.Calls {
		f(b, c)
		for _, r := range c.Regions {
			walk(r, f)
		}
	}
}
