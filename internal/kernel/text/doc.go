// Package text has the kernels of strings, which lie at a fixed width each, and
// of n-grams: comparing, joining, splitting, looking up and counting. Like all
// kernels they work on slices that the caller owns, allocate nothing that they
// keep, and may run on several goroutines as long as these write different
// results.
package text
