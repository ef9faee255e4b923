// Package selection has the kernels that order, pick and count: the largest
// elements of rows, the unique ones, and boxes that survive the suppression of
// those that overlap. The caller owns all slices and scratch; calls that write
// different results may run side by side.
package selection
