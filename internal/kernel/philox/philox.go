package philox

import "math/bits"

// Constants of Philox4x32: the multipliers of a round, and the steps of the
// key, which are parts of the golden ratio and of the root of 3.
const (
	multiplier0, multiplier1 = 0xd2511f53, 0xcd9e8d57
	step0, step1             = 0x9e3779b9, 0xbb67ae85
	rounds                   = 10
)

// Block maps a counter and a key to four random numbers.
func Block(counter [4]uint32, key [2]uint32) [4]uint32 {
	c, k := counter, key
	for range rounds {
		hi0, lo0 := bits.Mul32(multiplier0, c[0])
		hi1, lo1 := bits.Mul32(multiplier1, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k[0], lo1, hi0 ^ c[3] ^ k[1], lo0}
		k[0] += step0
		k[1] += step1
	}
	return c
}
