package wire

import (
	"fmt"
	"math"
	"slices"
)

// Codes of AttributeProto.AttributeType.
const (
	AttrFloat = iota + 1
	AttrInt
	AttrString
	AttrTensor
	AttrGraph
	AttrFloats
	AttrInts
	AttrStrings
	attrTensors
	attrGraphs
	AttrSparse
	attrSparseTensors
	AttrTypeProto
	attrTypeProtos
)

// attrKinds has for each code the number of the field with the value.
var attrKinds = [...]int{
	AttrFloat: 2, AttrInt: 3, AttrString: 4, AttrTensor: 5, AttrGraph: 6, AttrFloats: 7, AttrInts: 8, AttrStrings: 9,
	attrTensors: 10, attrGraphs: 11, AttrSparse: 22, attrSparseTensors: 23, AttrTypeProto: 14, attrTypeProtos: 15,
}

func (d *decoder) attr(m message, a *Attribute) error {
	values := attrValues{ints: []int64{}, floats: []float32{}, strings: []string{}}
	kind, last := 0, 0
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			a.Name = d.str(&f)
		case 20:
			if f.number >= uint64(len(attrKinds)) {
				err = fmt.Errorf("got %d, want 0 to %d", f.number, len(attrKinds)-1)
				break
			}
			kind = int(f.number)
		case 21:
			a.Ref = d.str(&f)
		default:
			last = f.num
			err = values.read(d, &f)
		}
		m.fault(&f, err)
	}
	switch {
	case m.err != nil:
		return m.err
	case a.Name == "":
		return m.faultf("name is missing")
	case a.Ref != "":
		return nil
	case kind == 0: // files before IR version 2 leave the type out
		kind = slices.Index(attrKinds[:], last)
	}
	if kind <= 0 {
		return m.faultf("attribute %q has no value", a.Name)
	}
	if a.Value = values.of(kind); a.Value == nil {
		return m.faultf("attribute %q has no %s, which its type promises", a.Name, attrFields[attrKinds[kind]].name)
	}
	return nil
}

// attrValues collects what an attribute message holds until its type is known,
// which stands behind the value. A number that is missing is zero: writers
// of proto3 leave zeros out.
type attrValues struct {
	f       float32
	i       int64
	s       string
	t       *Tensor
	g       *Graph
	sparse  *Sparse
	floats  []float32
	ints    []int64
	strings []string
	tp      *Type
}

func (v *attrValues) read(d *decoder, f *field) (err error) {
	switch f.num {
	case 2:
		v.f = math.Float32frombits(uint32(f.number))
	case 3:
		v.i = int64(f.number)
	case 4:
		v.s = string(f.body)
	case 5:
		m, err := f.message(tensorFields)
		if err != nil {
			return err
		}
		v.t = &Tensor{}
		return d.tensor(m, v.t)
	case 6:
		v.g, err = d.graph(f)
	case 7:
		v.floats, err = f.appendFloats(v.floats)
	case 8:
		v.ints, err = f.appendInts(v.ints)
	case 9:
		v.strings = append(v.strings, string(f.body))
	case 14:
		var t Type
		t, err = d.typ(f)
		v.tp = &t
	case 22:
		m, err := f.message(sparseFields)
		if err != nil {
			return err
		}
		v.sparse = &Sparse{}
		return d.sparse(m, v.sparse)
	}
	return err
}

// of returns the value of the given attribute type, nil when it is missing.
func (v *attrValues) of(kind int) any {
	switch kind {
	case AttrFloat:
		return v.f
	case AttrInt:
		return v.i
	case AttrString:
		return v.s
	case AttrFloats:
		return v.floats
	case AttrInts:
		return v.ints
	case AttrStrings:
		return v.strings
	case AttrTensor:
		if v.t != nil {
			return v.t
		}
		return nil
	case AttrGraph:
		if v.g != nil {
			return v.g
		}
		return nil
	case AttrTypeProto:
		if v.tp != nil && v.tp.Kind != "" {
			return v.tp
		}
	case AttrSparse:
		if v.sparse != nil {
			return v.sparse
		}
		return nil
	}
	return OtherKind(attrFields[attrKinds[kind]].name)
}
