package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// AttrKind is the kind of an attribute's value.
type AttrKind uint8

// The kinds of attribute values and the Go types that hold them.
const (
	Int       AttrKind = iota + 1 // int64
	Float                         // float64
	String                        // string
	DTypeKind                     // dtype.DType
	Ints                          // []int64
	Floats                        // []float64
	Strings                       // []string
)

var attrKindNames = [...]string{"", "int", "float", "string", "dtype", "ints", "floats", "strings"}

// String returns the kind as programs and errors write it: "int", "floats".
func (k AttrKind) String() string { return attrKindNames[k] }

// KindOf returns the kind of an attribute value, 0 for a type no attribute has.
func KindOf(value any) AttrKind {
	switch value.(type) {
	case int64:
		return Int
	case float64:
		return Float
	case string:
		return String
	case dtype.DType:
		return DTypeKind
	case []int64:
		return Ints
	case []float64:
		return Floats
	case []string:
		return Strings
	}
	return 0
}

// AttrDef declares one attribute of an operator.
type AttrDef struct {
	Name    string
	Kind    AttrKind
	Default any  // a value of Kind; nil: absent unless given
	Needed  bool // a call without it is an error
}

// Attr is one attribute of a call.
type Attr struct {
	Name  string
	Value any // see AttrKind for the types
}

// Attrs are the attributes of a call, sorted by name. They are not mutated
// after the call is built.
type Attrs []Attr

// NewAttrs returns the attributes sorted by name. It fails on a duplicate
// name and on a value of a type that no attribute has.
func NewAttrs(attrs ...Attr) (Attrs, error) {
	out := slices.Clone(attrs)
	slices.SortFunc(out, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range out {
		if i > 0 && out[i-1].Name == a.Name {
			return nil, fmt.Errorf("attribute %q is given twice", a.Name)
		}
		if KindOf(a.Value) == 0 {
			return nil, fmt.Errorf("attribute %q: got a %T, want int64, float64, string, dtype or a list of the first three", a.Name, a.Value)
		}
	}
	return out, nil
}

// Get returns the value of the attribute, nil when it is absent.
func (a Attrs) Get(name string) any {
	for i := range a {
		if a[i].Name == name {
			return a[i].Value
		}
	}
	return nil
}

// Has reports whether the attribute is present.
func (a Attrs) Has(name string) bool { return a.Get(name) != nil }

// Int returns an integer attribute, def when it is absent.
func (a Attrs) Int(name string, def int64) int64 {
	if v, ok := a.Get(name).(int64); ok {
		return v
	}
	return def
}

// Float returns a float attribute, def when it is absent.
func (a Attrs) Float(name string, def float64) float64 {
	if v, ok := a.Get(name).(float64); ok {
		return v
	}
	return def
}

// Str returns a string attribute, def when it is absent.
func (a Attrs) Str(name, def string) string {
	if v, ok := a.Get(name).(string); ok {
		return v
	}
	return def
}

// DType returns an element type attribute, def when it is absent.
func (a Attrs) DType(name string, def dtype.DType) dtype.DType {
	if v, ok := a.Get(name).(dtype.DType); ok {
		return v
	}
	return def
}

// Ints returns an integer list attribute, nil when it is absent. The list
// must not be written.
func (a Attrs) Ints(name string) []int64 {
	v, _ := a.Get(name).([]int64)
	return v
}

// Floats returns a float list attribute, nil when it is absent. The list must
// not be written.
func (a Attrs) Floats(name string) []float64 {
	v, _ := a.Get(name).([]float64)
	return v
}

// Strings returns a string list attribute, nil when it is absent. The list
// must not be written.
func (a Attrs) Strings(name string) []string {
	v, _ := a.Get(name).([]string)
	return v
}

// With returns the attributes with one set to value.
func (a Attrs) With(name string, value any) Attrs {
	out := make(Attrs, 0, len(a)+1)
	for _, x := range a {
		if x.Name != name {
			out = append(out, x)
		}
	}
	out = append(out, Attr{name, value})
	slices.SortFunc(out, func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Equal reports whether both hold the same names and values.
func (a Attrs) Equal(b Attrs) bool {
	return slices.EqualFunc(a, b, func(x, y Attr) bool { return x.Name == y.Name && equalValue(x.Value, y.Value) })
}

func equalValue(x, y any) bool {
	switch x := x.(type) {
	case []int64:
		y, ok := y.([]int64)
		return ok && slices.Equal(x, y)
	case []float64:
		y, ok := y.([]float64)
		return ok && slices.Equal(x, y)
	case []string:
		y, ok := y.([]string)
		return ok && slices.Equal(x, y)
	}
	return x == y
}
