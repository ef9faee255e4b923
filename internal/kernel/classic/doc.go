// Package classic has the kernels of classical machine learning: it walks the
// trees of an ensemble for rows of features and joins the weights of their
// leaves, computes the distances between rows, and joins the probabilities of
// pairs of classes.
//
//	e := classic.Ensemble[float32, int32]{Nodes: nodes, Roots: roots, Weights: weights, Outputs: 1, Features: 30}
//	if err := e.Check(); err == nil {
//		e.Rows(scores, nil, x, scratch)
//	}
//
// The caller owns all slices. Calls that write different results may run side
// by side.
package classic
