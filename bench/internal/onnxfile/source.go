package onnxfile

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Source fills a slice with the next numbers of a sequence.
type Source func(dst []float32)

// Uniform makes sources of numbers between -bound and bound. Every source
// that the result makes gives the same sequence.
func Uniform(seed uint64, bound float64) func() Source { return Between(seed, -bound, bound) }

// He makes sources of numbers of the variance that keeps the size of values
// through a layer of fanIn inputs and a ReLU.
func He(seed uint64, fanIn int) func() Source { return Uniform(seed, math.Sqrt(6/float64(fanIn))) }

// Between makes sources of numbers between low and high.
func Between(seed uint64, low, high float64) func() Source {
	return func() Source {
		r := rand.NewPCG(seed, 0x9e3779b97f4a7c15)
		step := float32((high - low) / (1 << 24))
		return func(dst []float32) {
			for i := range dst {
				dst[i] = float32(low) + step*float32(r.Uint64()>>40)
			}
		}
	}
}

// Seed makes a seed of a name.
func Seed(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
