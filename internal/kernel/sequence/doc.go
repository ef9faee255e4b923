// Package sequence has the kernels over the steps of sequences: attention,
// linear attention, rotary embeddings and recurrent cells. A kernel takes the
// variant that its products and functions run on. The caller owns all slices
// and scratch; tiles may run side by side.
package sequence
