package philox

import "math"

// Stream is a sequence of random numbers. Streams of one key that differ in Run
// or Draw are independent of each other.
type Stream struct {
	Key  uint64
	Run  uint32
	Draw uint32
}

// PerBlock is how many numbers of 64 bits one block of the generator makes.
const PerBlock = 2

// at returns block i of the stream as two numbers of 64 bits.
func (s Stream) at(i uint64) (uint64, uint64) {
	x := Block([4]uint32{uint32(i), uint32(i >> 32), s.Draw, s.Run}, [2]uint32{uint32(s.Key), uint32(s.Key >> 32)})
	return uint64(x[1])<<32 | uint64(x[0]), uint64(x[3])<<32 | uint64(x[2])
}

// Uniform fills dst with numbers from 0 to 1, 1 excluded, each a multiple of
// 2^-53. The first one is number first of the stream, which must be even.
func Uniform(dst []float64, s Stream, first int) {
	pairs(dst, s, first, func(x, y uint64) (float64, float64) {
		return float64(x>>11) * 0x1p-53, float64(y>>11) * 0x1p-53
	})
}

// Normal fills dst with numbers of the normal distribution with mean 0 and
// deviation 1, by the transformation of Box and Muller. The first one is number
// first of the stream, which must be even.
func Normal(dst []float64, s Stream, first int) {
	pairs(dst, s, first, func(x, y uint64) (float64, float64) {
		radius := math.Sqrt(-2 * math.Log(float64(x>>11+1)*0x1p-53)) // of a number above 0
		sin, cos := math.Sincos(2 * math.Pi * float64(y>>11) * 0x1p-53)
		return radius * cos, radius * sin
	})
}

// pairs fills dst with what f makes of the blocks of the stream.
func pairs(dst []float64, s Stream, first int, f func(x, y uint64) (float64, float64)) {
	block := uint64(first / PerBlock)
	for i := 0; i < len(dst); i += PerBlock {
		a, b := f(s.at(block))
		block++
		dst[i] = a
		if i+1 < len(dst) {
			dst[i+1] = b
		}
	}
}
