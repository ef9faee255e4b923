package classic

import "github.com/tenure-go/tenure/internal/kernel"

// walk returns the leaf that a row reaches, for any kinds of nodes.
func (e *Ensemble[T, I]) walk(root I, row []T) I {
	for at := root; ; {
		n := &e.Nodes[at]
		if n.Info >= 0 {
			return n.Info
		}
		kind, v := -1-n.Info, row[n.Feature]
		var first bool
		switch {
		case v != v:
			first = kind&NaN != 0
		case kind&Equal != 0:
			first = v == n.Split
		case kind&Member != 0:
			first = e.member(n.set(), v)
		default:
			first = v <= n.Split
		}
		if at = n.Child; !first {
			at++
		}
	}
}

// member reports whether v is in the set that begins at a place.
func (e *Ensemble[T, I]) member(at I, v T) bool {
	for _, m := range e.Members[at:] {
		if m != m {
			return false
		}
		if m == v {
			return true
		}
	}
	return false
}

// above is 1 where v > split, without a branch: which way a row goes cannot be
// predicted.
func above[T kernel.Float, I Index](v, split T) I {
	var one I
	if v > split {
		one = 1
	}
	return one
}

// walkRows sets at to the leaves that the first rows of x reach in one tree.
// All nodes compare with a split, and x has no NaN.
func (e *Ensemble[T, I]) walkRows(at *[lanes]I, root I, x []T) {
	nodes, f := e.Nodes, e.Features
	x = x[:lanes*f]
	for h := 0; h < lanes; h += 4 {
		a, b, c, d := root, root, root, root
		x0, x1, x2, x3 := x[h*f:][:f], x[(h+1)*f:][:f], x[(h+2)*f:][:f], x[(h+3)*f:][:f]
		for {
			p, q, r, s := &nodes[a], &nodes[b], &nodes[c], &nodes[d]
			nextA := p.Child + above[T, I](x0[p.Feature], p.Split)
			nextB := q.Child + above[T, I](x1[q.Feature], q.Split)
			nextC := r.Child + above[T, I](x2[r.Feature], r.Split)
			nextD := s.Child + above[T, I](x3[s.Feature], s.Split)
			if (nextA^a)|(nextB^b)|(nextC^c)|(nextD^d) == 0 {
				at[h], at[h+1], at[h+2], at[h+3] = p.Info, q.Info, r.Info, s.Info
				break
			}
			a, b, c, d = nextA, nextB, nextC, nextD
		}
	}
}

// walkTrees sets at to the leaves that one row reaches in several trees, as
// walkRows does.
func (e *Ensemble[T, I]) walkTrees(at *[lanes]I, roots []I, row []T) {
	nodes := e.Nodes
	roots = roots[:lanes]
	for h := 0; h < lanes; h += 4 {
		a, b, c, d := roots[h], roots[h+1], roots[h+2], roots[h+3]
		for {
			p, q, r, s := &nodes[a], &nodes[b], &nodes[c], &nodes[d]
			nextA := p.Child + above[T, I](row[p.Feature], p.Split)
			nextB := q.Child + above[T, I](row[q.Feature], q.Split)
			nextC := r.Child + above[T, I](row[r.Feature], r.Split)
			nextD := s.Child + above[T, I](row[s.Feature], s.Split)
			if (nextA^a)|(nextB^b)|(nextC^c)|(nextD^d) == 0 {
				at[h], at[h+1], at[h+2], at[h+3] = p.Info, q.Info, r.Info, s.Info
				break
			}
			a, b, c, d = nextA, nextB, nextC, nextD
		}
	}
}
