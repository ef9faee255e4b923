package tokenizer

import (
	"slices"
	"strings"
)

// A trie finds the texts of a list that another text begins with. Nodes are in
// the order of a search by level, so that the children of one are neighbours.
type trie struct {
	nodes  []trieNode
	labels []byte // of the nodes: the byte that leads to each
	// roots has the children of the first node by byte, or 0.
	roots [256]uint32
}

type trieNode struct {
	child uint32 // the first child
	count uint16 // of children
	value int32  // or -1
}

// newTrie makes a trie of texts with their values. The last of equal texts
// counts, and empty ones do not.
func newTrie(texts []string, values []int32) *trie {
	order := make([]int32, len(texts))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return strings.Compare(texts[a], texts[b]) })
	t := &trie{nodes: []trieNode{{value: -1}}, labels: []byte{0}}
	// A level is a queue of nodes, each with the texts below it.
	type open struct{ node, low, high, depth int }
	queue := []open{{0, 0, len(order), 0}}
	for len(queue) > 0 {
		o := queue[0]
		queue = queue[1:]
		for o.low < o.high && len(texts[order[o.low]]) == o.depth {
			if o.depth > 0 {
				t.nodes[o.node].value = values[order[o.low]]
			}
			o.low++
		}
		t.nodes[o.node].child = uint32(len(t.nodes))
		for o.low < o.high {
			label, low := texts[order[o.low]][o.depth], o.low
			for o.low < o.high && texts[order[o.low]][o.depth] == label {
				o.low++
			}
			t.nodes[o.node].count++
			if o.node == 0 {
				t.roots[label] = uint32(len(t.nodes))
			}
			queue = append(queue, open{len(t.nodes), low, o.low, o.depth + 1})
			t.nodes = append(t.nodes, trieNode{value: -1})
			t.labels = append(t.labels, label)
		}
	}
	return t
}

// next returns the node that a byte leads to, or 0.
func (t *trie) next(node uint32, b byte) uint32 {
	if node == 0 {
		return t.roots[b]
	}
	n := &t.nodes[node]
	low, count := n.child, uint32(n.count)
	for count > 8 {
		half := count / 2
		if t.labels[low+half] <= b {
			low += half
			count -= half
		} else {
			count = half
		}
	}
	for i := low; i < low+count; i++ {
		if t.labels[i] == b {
			return i
		}
	}
	return 0
}

// longest returns the value and the size of the longest text that another
// begins with, or -1.
func (t *trie) longest(text []byte) (value int32, size int) {
	value = -1
	node := uint32(0)
	for i, b := range text {
		if node = t.next(node, b); node == 0 {
			break
		}
		if v := t.nodes[node].value; v >= 0 {
			value, size = v, i+1
		}
	}
	return value, size
}
