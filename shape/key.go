package shape

import "math/rand/v2"

// maxPacked is the largest number of words that an exact key can have.
const maxPacked = 8

// keys computes the keys of the tables. The words of nearly every path are
// small enough to be packed into one key. Such a key is exact: no other path of
// the same length has it, so a lookup need not compare the value. Any other key
// is a hash, and different paths may have the same one. Exact keys are odd,
// hashes are even, and no key is 0.
//
// Both kinds are multiplied by random odd numbers of this process, which spread
// them over all bits; tables use the upper bits.
type keys struct {
	widths [maxPacked + 1]uint // bits of a word, by the number of words
	limits [maxPacked + 1]uint // exclusive upper bounds of words that fit
	scale  uint64
	spread uint64
	scales [maxLevels + 1]uint64 // of hashes
}

func (k *keys) open() {
	k.scale, k.spread = rand.Uint64()|1, rand.Uint64()|1
	for i := range k.scales {
		k.scales[i] = rand.Uint64() | 1
	}
	k.limits[0] = 1
	for n := 1; n <= maxPacked; n++ {
		k.widths[n] = width(n)
		k.limits[n] = 1 << width(n)
	}
}

// of returns the key of a path.
func (k *keys) of(words []int) uint64 {
	if key, ok := k.exact(words); ok {
		return key
	}
	return k.hash(words)
}

// width returns the number of bits of each word of an exact key of n words.
func width(words int) uint { return 63 / uint(words) }

// exact returns the exact key of a path, if the path has one.
func (k *keys) exact(words []int) (key uint64, ok bool) {
	if len(words) > maxPacked {
		return 0, false
	}
	packed, all := k.pack(words)
	return k.scatter(packed), k.fit(all, len(words))
}

// pack returns the words of a path side by side, and the bitwise or of them.
func (k *keys) pack(words []int) (packed, all int) {
	width := k.widths[len(words)]
	for _, w := range words {
		packed, all = packed<<(width&63)|w, all|w
	}
	return packed, all
}

// pack2, pack3 and pack4 are pack for 2, 3 and 4 words, without its loop, which
// would double the time of a lookup.
func pack2(w *[2]int) (packed, all int) { return w[0]<<width(2) | w[1], w[0] | w[1] }

func pack3(w *[3]int) (packed, all int) {
	return w[0]<<(2*width(3)) | w[1]<<width(3) | w[2], w[0] | w[1] | w[2]
}

func pack4(w *[4]int) (packed, all int) {
	return w[0]<<(3*width(4)) | w[1]<<(2*width(4)) | w[2]<<width(4) | w[3], w[0] | w[1] | w[2] | w[3]
}

// fit reports whether n words with these bits fit an exact key.
func (k *keys) fit(all, words int) bool { return uint(all) < k.limits[words] }

// scatter makes a key of packed words: it appends a 1 bit to them and
// multiplies by the scale.
func (k *keys) scatter(packed int) uint64 {
	key := (uint64(packed)<<1 | 1) * k.scale
	// Both steps are invertible, so different words have different keys.
	key ^= key >> 32 &^ 1
	return key * k.spread
}

// hash returns the key of a path that has no exact key.
func (k *keys) hash(words []int) uint64 {
	h := uint64(len(words))
	for i, w := range words[:min(len(words), maxLevels)] {
		h += uint64(w) * k.scales[i&(maxLevels-1)]
	}
	if len(words) > maxLevels {
		for _, w := range words[maxLevels:] {
			h = (h^h>>32)*k.scales[maxLevels] + uint64(w)
		}
		h *= k.scales[maxLevels]
	}
	h = (h ^ h>>32) * k.spread
	return h&^1 | 2
}
