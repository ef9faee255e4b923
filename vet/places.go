package vet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// A place is a field or an element, such as h.x or xs[0], for which this
// analysis makes a variable of its own. The state of a place is forgotten at
// the next call of a function that could reach it.
type place struct {
	root  *types.Var   // of the expression, h or xs
	path  string       // the rest
	index []*types.Var // variables in the path
}

// last returns the part of the path by which places of different roots may be
// the same.
func (p place) last() string {
	if i := strings.LastIndexAny(p.path, ".["); i >= 0 {
		return p.path[i:]
	}
	return p.path
}

// variable returns the variable that e names, or that stands for the place that
// e names, nil for anything else.
func (f *flow) variable(e ast.Expr) *types.Var {
	e = ast.Unparen(e)
	if id, ok := e.(*ast.Ident); ok {
		v, ok := f.info.ObjectOf(id).(*types.Var)
		if !ok || v.IsField() || v.Parent() == nil {
			return nil
		}
		if v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			return f.placeOf(e, v.Type())
		}
		return v
	}
	switch e.(type) {
	case *ast.SelectorExpr, *ast.IndexExpr:
		return f.placeOf(e, f.info.TypeOf(e))
	}
	return nil
}

// alias makes the elements of a literal that is assigned to v other names of
// the variables in them.
func (f *flow) alias(v *types.Var, value ast.Expr) {
	e := ast.Unparen(value)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = u.X
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return
	}
	for i, el := range lit.Elts {
		path := "[" + strconv.Itoa(i) + "]"
		fields, isStruct := f.info.TypeOf(lit).Underlying().(*types.Struct)
		if kv, ok := el.(*ast.KeyValueExpr); ok {
			el = kv.Value
			if key, ok := kv.Key.(*ast.Ident); ok && isStruct {
				path = "." + key.Name
			} else if tv := f.info.Types[kv.Key]; tv.Value != nil {
				path = "[" + tv.Value.ExactString() + "]"
			} else {
				continue
			}
		} else if isStruct {
			path = "." + fields.Field(i).Name()
		}
		from := f.variable(el)
		if from == nil || kindOf(from.Type()) == nothing {
			continue
		}
		if _, ok := f.get(from); ok {
			to := f.placeAt(place{root: v, path: path}, v.Name()+path, from.Type())
			f.state[to] = holding{is: alive, same: f.state.root(from)}
		}
	}
}

// placeOf returns the variable of a place with a followed value, nil if e is
// none.
func (f *flow) placeOf(e ast.Expr, t types.Type) *types.Var {
	if t == nil || kindOf(t) == nothing {
		return nil
	}
	p, ok := f.locate(e)
	if !ok {
		return nil
	}
	return f.placeAt(p, types.ExprString(e), t)
}

func (f *flow) placeAt(p place, name string, t types.Type) *types.Var {
	for v, q := range f.places {
		if q.root == p.root && q.path == p.path {
			return v
		}
	}
	v := types.NewVar(token.NoPos, f.c.pass.Pkg, name, t)
	f.places[v] = p
	return v
}

func (f *flow) locate(e ast.Expr) (place, bool) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := f.info.ObjectOf(e).(*types.Var)
		return place{root: v}, ok
	case *ast.StarExpr:
		return f.locate(e.X)
	case *ast.SelectorExpr:
		if s := f.info.Selections[e]; s == nil {
			v, ok := f.info.ObjectOf(e.Sel).(*types.Var) // of another package
			return place{root: v}, ok
		} else if s.Kind() != types.FieldVal {
			return place{}, false
		}
		p, ok := f.locate(e.X)
		p.path += "." + e.Sel.Name
		return p, ok
	case *ast.IndexExpr:
		p, ok := f.locate(e.X)
		if tv := f.info.Types[e.Index]; tv.Value != nil {
			p.path += "[" + tv.Value.ExactString() + "]"
			return p, ok
		}
		if id, isIdent := e.Index.(*ast.Ident); isIdent {
			if v, isVar := f.info.ObjectOf(id).(*types.Var); isVar {
				p.path += "[" + id.Name + "]"
				p.index = append(p.index, v)
				return p, ok
			}
		}
	}
	return place{}, false
}

func (f *flow) isPlace(v *types.Var) bool {
	_, ok := f.places[v]
	return ok
}

// forget forgets the state of places that could have changed: all of them
// except those that keep selects.
func (f *flow) forget(changed func(place) bool) {
	for v, p := range f.places {
		if h, ok := f.state[v]; ok && changed(p) {
			if h.same == nil {
				f.state.partFrom(v)
			}
			delete(f.state, v)
		}
	}
}

// called forgets the state of places, because code ran that could have changed
// them.
func (f *flow) called() { f.forget(func(place) bool { return true }) }

// assigned forgets the state of places that an assignment to the variable or
// place v changes.
func (f *flow) assigned(v *types.Var) {
	to, isPlace := f.places[v]
	f.forget(func(p place) bool {
		if !isPlace {
			if p.root == v {
				return true
			}
			for _, i := range p.index {
				if i == v {
					return true
				}
			}
			return false
		}
		if p.root == to.root && p.path == to.path {
			return false // it is assigned itself
		}
		return p.last() == to.last() || strings.HasPrefix(to.last(), "[") && strings.HasPrefix(p.last(), "[")
	})
}

// get returns the holding of v. It is false for a local variable that is not
// followed.
func (f *flow) get(v *types.Var) (holding, bool) {
	r := f.state.root(v)
	h, ok := f.state[r]
	if !ok && r == v && f.isPlace(v) {
		return holding{is: alive}, true
	}
	return h, ok
}

// set changes the holding of v, under all its names.
func (f *flow) set(v *types.Var, h holding) { f.state[f.state.root(v)] = h }

// owner returns the outputs that v is an element of, or the scope that made it,
// nil for others.
func (f *flow) owner(v *types.Var) *types.Var {
	if h, ok := f.state[v]; ok && h.of != nil {
		return h.of
	}
	r := f.state.root(v)
	if h, ok := f.state[r]; ok && h.of != nil {
		return h.of
	}
	for _, w := range []*types.Var{v, r} {
		if p, ok := f.places[w]; ok && p.root != nil && kindOf(p.root.Type()) == container {
			return p.root
		}
	}
	return nil
}
