// Package signal has the kernels of Fourier transforms: a transform of any
// length over rows, and the weights of mel filters. The caller owns all slices;
// a prepared Fourier is read only, and any number of goroutines may transform
// rows with it.
package signal
