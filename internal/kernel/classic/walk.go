package classic

import (
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

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

// next returns the node after node at, for the numbers of one row, which lie
// step numbers apart. It has no branch: which way a row goes cannot be
// predicted. A leaf is its own next node. Check has seen that at and the
// feature are in range.
func next[T kernel.Float, I Index](nodes unsafe.Pointer, at I, row unsafe.Pointer, step uintptr) I {
	n := (*Node[T, I])(unsafe.Add(nodes, uintptr(at)*unsafe.Sizeof(Node[T, I]{})))
	var one I
	if *(*T)(unsafe.Add(row, uintptr(n.Feature)*step*unsafe.Sizeof(n.Split))) > n.Split {
		one = 1
	}
	return n.Child + one
}

// walkRows sets at to the leaves that lanes rows reach in one tree: x has the
// first feature of all of them, then the second one, and so on. All nodes
// compare with a split, and x has no NaN.
func (e *Ensemble[T, I]) walkRows(at *[lanes]I, root I, x []T) {
	nodes, row := unsafe.Pointer(unsafe.SliceData(e.Nodes)), unsafe.Pointer(unsafe.SliceData(x[:lanes*e.Features]))
	size := unsafe.Sizeof(x[0])
	row0, row1, row2, row3 := row, unsafe.Add(row, size), unsafe.Add(row, 2*size), unsafe.Add(row, 3*size)
	row4, row5, row6, row7 := unsafe.Add(row, 4*size), unsafe.Add(row, 5*size), unsafe.Add(row, 6*size), unsafe.Add(row, 7*size)
	a, b, c, d, f, g, h, i := root, root, root, root, root, root, root, root
	for moved := I(1); moved != 0; {
		to := next[T](nodes, a, row0, lanes)
		moved, a = to^a, to
		to = next[T](nodes, b, row1, lanes)
		moved, b = moved|(to^b), to
		to = next[T](nodes, c, row2, lanes)
		moved, c = moved|(to^c), to
		to = next[T](nodes, d, row3, lanes)
		moved, d = moved|(to^d), to
		to = next[T](nodes, f, row4, lanes)
		moved, f = moved|(to^f), to
		to = next[T](nodes, g, row5, lanes)
		moved, g = moved|(to^g), to
		to = next[T](nodes, h, row6, lanes)
		moved, h = moved|(to^h), to
		to = next[T](nodes, i, row7, lanes)
		moved, i = moved|(to^i), to
	}
	*at = [lanes]I{e.Nodes[a].Info, e.Nodes[b].Info, e.Nodes[c].Info, e.Nodes[d].Info, e.Nodes[f].Info, e.Nodes[g].Info, e.Nodes[h].Info, e.Nodes[i].Info}
}

// walkTrees sets at to the leaves that one row reaches in lanes trees, as
// walkRows does.
func (e *Ensemble[T, I]) walkTrees(at *[lanes]I, roots []I, x []T) {
	nodes, row := unsafe.Pointer(unsafe.SliceData(e.Nodes)), unsafe.Pointer(unsafe.SliceData(x[:e.Features]))
	roots = roots[:lanes]
	a, b, c, d, f, g, h, i := roots[0], roots[1], roots[2], roots[3], roots[4], roots[5], roots[6], roots[7]
	for moved := I(1); moved != 0; {
		to := next[T](nodes, a, row, 1)
		moved, a = to^a, to
		to = next[T](nodes, b, row, 1)
		moved, b = moved|(to^b), to
		to = next[T](nodes, c, row, 1)
		moved, c = moved|(to^c), to
		to = next[T](nodes, d, row, 1)
		moved, d = moved|(to^d), to
		to = next[T](nodes, f, row, 1)
		moved, f = moved|(to^f), to
		to = next[T](nodes, g, row, 1)
		moved, g = moved|(to^g), to
		to = next[T](nodes, h, row, 1)
		moved, h = moved|(to^h), to
		to = next[T](nodes, i, row, 1)
		moved, i = moved|(to^i), to
	}
	*at = [lanes]I{e.Nodes[a].Info, e.Nodes[b].Info, e.Nodes[c].Info, e.Nodes[d].Info, e.Nodes[f].Info, e.Nodes[g].Info, e.Nodes[h].Info, e.Nodes[i].Info}
}

// byFeature sets dst to the numbers of whole groups of lanes rows, each group
// with the first feature of all of its rows, then the second one, and so on.
func byFeature[T any](dst, x []T, features, rows int) {
	for r := 0; r < rows; r += lanes {
		group := dst[r*features:][:lanes*features]
		for k := range lanes {
			row := x[(r+k)*features:][:features]
			for f, v := range row {
				group[f*lanes+k] = v
			}
		}
	}
}
