package onnx

import (
	"cmp"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/onnx/contrib"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/ml"
	"github.com/tenure-go/tenure/internal/onnx/standard"
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

// known are the operators that are read.
var known = sync.OnceValue(func() lift.Tables {
	return lift.Tables{"": standard.Table(), contrib.Domain: contrib.Table(), ml.Domain: ml.Table()}
})

// Operators lists the operators that are read, by name.
func Operators() []Support {
	var list []Support
	for name, o := range known()[""] {
		s := Support{Name: name, From: max(o.From, MinOpset), Till: MaxOpset, Numbers: !o.TextOnly, Strings: o.Text != nil}
		if o.Till != 0 {
			s.Till = o.Till
		}
		if def := op.Builtin().LookupONNX(name); def != nil {
			s.Operator = def.Name
		}
		list = append(list, s)
	}
	for name, o := range known()[contrib.Domain] {
		if o.Refusal != "" {
			continue
		}
		list = append(list, Support{Name: contrib.Domain + "::" + name, From: o.From, Till: o.From, Numbers: true})
	}
	for name, o := range known()[ml.Domain] {
		list = append(list, Support{Name: ml.Domain + "::" + name, From: o.From, Till: o.Till, Numbers: true, Strings: o.Text != nil})
	}
	slices.SortFunc(list, func(a, b Support) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
