package shape

import "math/rand/v2"

// maxPacked is the number of words up to which a key can be exact.
const maxPacked = 8

// keys makes the keys that tables find values by. The words of nearly every
// path are so small that one key holds them all: it is exact, which is to say
// that it stands for this path alone among those of its length, and who finds
// it need not look at the value. Any other key is a hash, and equal ones do not
// mean equal paths. Exact keys are odd, hashes are even, and none is 0.
//
// Both are spread over all bits by multipliers of this process alone; tables
// go by the upper ones.
type keys struct {
	packs  [maxPacked + 1]pack // of paths of so many words
	scale  uint64
	spread uint64
	scales [maxLevels + 1]uint64 // of hashes
}

// pack is how so many words make an exact key.
type pack struct {
	limit  uint // words below it fit
	scales [maxPacked]uint64
}

func (k *keys) open() {
	k.scale, k.spread = rand.Uint64()|1, rand.Uint64()|1
	for i := range k.scales {
		k.scales[i] = rand.Uint64() | 1
	}
	k.packs[0].limit = 1
	for n := 1; n <= maxPacked; n++ {
		width := 63 / n
		k.packs[n].limit = 1 << width
		for i := range n {
			k.packs[n].scales[i] = k.scale << (1 + i*width)
		}
	}
}

// of returns the key of a path.
func (k *keys) of(words []int) uint64 {
	if key, ok := k.exact(words); ok {
		return key
	}
	return k.hash(words)
}

// exact returns the exact key of a path, if it has one.
func (k *keys) exact(words []int) (key uint64, ok bool) {
	if len(words) > maxPacked {
		return 0, false
	}
	// It is the product of the words side by side, with a 1 behind them, and the
	// scale. The sum of their own products is the same and comes sooner.
	p := &k.packs[len(words)]
	key, all := k.scale, 0
	for i, w := range words {
		key += uint64(w) * p.scales[i]
		all |= w
	}
	// This can be undone, too: different words have different keys.
	key ^= key >> 32 &^ 1
	return key * k.spread, uint(all) < p.limit
}

// hash returns the key of a path that has no exact one.
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
