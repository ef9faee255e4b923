package ref

import "math"

// TreeNode is a node of a decision tree, or a leaf where it has weights.
type TreeNode struct {
	Feature     int
	Test        func(v float64) bool // whether a row continues with True
	True, False *TreeNode
	Weights     map[int]float64 // of a leaf, by target
}

// Trees joins the weights of the leaves that a row reaches: how is SUM,
// AVERAGE, MIN or MAX. seen reports for which targets there are weights.
// Numbers are rounded by round after each addition.
func Trees(roots []*TreeNode, row []float64, targets int, how string, round func(float64) float64) (scores []float64, seen []bool) {
	scores, seen = make([]float64, targets), make([]bool, targets)
	for _, n := range roots {
		for n.Weights == nil {
			if n.Test(row[n.Feature]) {
				n = n.True
			} else {
				n = n.False
			}
		}
		for target, w := range n.Weights {
			switch {
			case how == "MIN" && seen[target]:
				w = math.Min(scores[target], w)
			case how == "MAX" && seen[target]:
				w = math.Max(scores[target], w)
			default:
				w += scores[target]
			}
			scores[target], seen[target] = round(w), true
		}
	}
	if how == "AVERAGE" {
		for i := range scores {
			scores[i] = round(scores[i] / float64(len(roots)))
		}
	}
	return scores, seen
}
