package ml

import "github.com/tenure-go/tenure/internal/onnx/lift"

// Domain is the domain of ONNX for classical machine learning.
const Domain = "ai.onnx.ml"

// last is the newest opset of Domain that is read.
const last = 5

// Table returns the operators of Domain that are read.
func Table() map[string]lift.Operator {
	return lift.Merge(featureOps, labelOps, linearOps, mapOps, svmOps, treeOps)
}

// lifted returns an operator of numbers that is the same in all opsets.
func lifted(f func(*lift.Node)) lift.Operator { return lift.Operator{From: 1, Till: last, Lift: f} }

// onText returns an operator of numbers and strings that is the same in all
// opsets.
func onText(f func(*lift.Node)) lift.Operator {
	return lift.Operator{From: 1, Till: last, Lift: f, Text: f}
}
