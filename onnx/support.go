package onnx

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Support is one operator of ONNX that is read.
type Support struct {
	Name       string // "Relu", "com.microsoft::Gelu"
	From, Till int64  // the opsets of its domain
	Operator   string // the one that it becomes, "" where it is put together from others
	Numbers    bool   // it takes numbers
	Strings    bool   // it takes strings
}

// Operators lists the operators that are read, by name.
func Operators() []Support {
	var list []Support
	for name, o := range operators {
		_, textOnly := stringTable[name]
		s := Support{Name: name, From: max(o.from, MinOpset), Till: MaxOpset, Numbers: !textOnly, Strings: stringLifts[name] != nil}
		if o.till != 0 {
			s.Till = o.till
		}
		if def := op.Builtin().LookupONNX(name); def != nil {
			s.Operator = def.Name
		}
		list = append(list, s)
	}
	for name, o := range contrib {
		list = append(list, Support{Name: contribDomain + "::" + name, From: o.from, Till: o.from, Numbers: true})
	}
	for name, o := range mlTable {
		list = append(list, Support{Name: mlDomain + "::" + name, From: o.from, Till: o.till, Strings: true})
	}
	slices.SortFunc(list, func(a, b Support) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
