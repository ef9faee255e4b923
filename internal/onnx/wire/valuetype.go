package wire

import (
	"github.com/tenure-go/tenure/op"
)

func (d *decoder) value(m message, v *Value) error {
	for f := (field{}); m.next(&f); {
		var err error
		switch f.num {
		case 1:
			v.Name = d.str(&f)
		case 2:
			v.Type, err = d.typ(&f)
		}
		m.fault(&f, err)
	}
	return m.err
}

var typeKinds = [...]string{1: "tensor", 4: "sequence", 5: "map", 7: "opaque", 8: "sparse tensor", 9: "optional"}

func (d *decoder) typ(in *field) (t Type, err error) {
	m, err := in.message(typeFields)
	if err != nil {
		return t, err
	}
	for f := (field{}); m.next(&f); {
		t = Type{Kind: typeKinds[f.num]}
		switch t.Kind {
		case "tensor":
			m.fault(&f, d.tensorType(&f, &t))
		case "sequence", "optional":
			m.fault(&f, d.elemType(&f, &t))
		case "map":
			m.fault(&f, d.mapType(&f, &t))
		}
	}
	return t, m.err
}

// elemType decodes the type of the elements of a sequence or an optional.
func (d *decoder) elemType(in *field, t *Type) error {
	m, err := in.message(elemTypeFields)
	if err != nil {
		return err
	}
	for f := (field{}); m.next(&f); {
		elem, err := d.typ(&f)
		t.Elem = &elem
		m.fault(&f, err)
	}
	return m.err
}

// mapType decodes the types of the keys and values of a map.
func (d *decoder) mapType(in *field, t *Type) error {
	m, err := in.message(mapTypeFields)
	if err != nil {
		return err
	}
	for f := (field{}); m.next(&f); {
		if f.num == 1 {
			t.Key = int32(f.number)
			continue
		}
		elem, err := d.typ(&f)
		t.Elem = &elem
		m.fault(&f, err)
	}
	return m.err
}

func (d *decoder) tensorType(in *field, t *Type) error {
	m, err := in.message(tensorTypeFields)
	if err != nil {
		return err
	}
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			t.ElemType = int32(f.number)
		case 2:
			t.HasShape = true
			t.Dims, err = d.dims(&f)
			m.fault(&f, err)
		}
	}
	return m.err
}

func (d *decoder) dims(in *field) (dims []Dim, err error) {
	m, err := in.message(shapeFields)
	if err != nil {
		return nil, err
	}
	n, err := m.counts()
	if err != nil {
		return nil, err
	}
	if n[1] > op.MaxRank {
		return nil, m.faultf("got %d dims, want at most %d", n[1], op.MaxRank)
	}
	dims = withCapacity[Dim](n[1])
	for f := (field{}); m.next(&f); {
		dims, err = appendMessage(dims, &f, dimFields, d.dim)
		m.fault(&f, err)
	}
	return dims, m.err
}

func (d *decoder) dim(m message, dim *Dim) error {
	for f := (field{}); m.next(&f); {
		switch f.num {
		case 1:
			*dim = Dim{Size: int64(f.number), Sized: true}
		case 2:
			*dim = Dim{Symbol: d.str(&f)}
		}
	}
	return m.err
}
