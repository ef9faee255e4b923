package suite

import (
	"fmt"

	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// Attention lists attention alone: over prompts, causal and not, and over
// cached keys for one token. Names say the heads, those of the keys and the
// size of one, and the keys.
func Attention() (list []Model) {
	add := func(a attentionOf) {
		list = append(list, Model{Name: a.name(), Build: built(a.graph)})
	}
	for _, heads := range [][3]int{{12, 12, 64}, {32, 32, 128}, {32, 8, 128}} {
		for _, keys := range []int{128, 256, 512, 2048} {
			for _, causal := range []bool{false, true} {
				add(attentionOf{heads[0], heads[1], heads[2], keys, keys, causal})
			}
		}
		for _, keys := range []int{512, 2048, 8192} {
			add(attentionOf{heads[0], heads[1], heads[2], 1, keys, false})
		}
	}
	return list
}

// attentionOf is one node of attention.
type attentionOf struct {
	heads, groups, size, queries, keys int
	causal                             bool
}

func (a attentionOf) name() string {
	kind := "full"
	switch {
	case a.queries == 1:
		kind = "step"
	case a.causal:
		kind = "causal"
	}
	return fmt.Sprintf("attention-%dof%dx%d-%d-%s", a.heads, a.groups, a.size, a.keys, kind)
}

// graph is the operator Attention of version 23. Inputs are q, k and v
// f32[1,length,heads*size].
func (a attentionOf) graph() *f.Graph {
	g := f.New(23)
	g.Input("q", f.F32, 1, a.queries, a.heads*a.size)
	g.Input("k", f.F32, 1, a.keys, a.groups*a.size)
	g.Input("v", f.F32, 1, a.keys, a.groups*a.size)
	causal := int64(0)
	if a.causal {
		causal = 1
	}
	g.Node("Attention", []string{"q", "k", "v"}, []string{"y"},
		f.Int("is_causal", causal), f.Int("q_num_heads", int64(a.heads)), f.Int("kv_num_heads", int64(a.groups)))
	g.Output("y", f.F32)
	return g
}
