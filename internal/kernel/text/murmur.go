package text

import (
	"encoding/binary"
	"math/bits"
)

// Murmur returns MurmurHash3 of bytes, in the form for 32 bits.
func Murmur(key []byte, seed uint32) uint32 {
	h, n := seed, len(key)
	for ; len(key) >= 4; key = key[4:] {
		h ^= murmurBlock(binary.LittleEndian.Uint32(key))
		h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
	}
	var rest uint32
	for i, b := range key {
		rest |= uint32(b) << (8 * i)
	}
	h ^= murmurBlock(rest) // 0 of 0
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

func murmurBlock(k uint32) uint32 { return bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593 }
