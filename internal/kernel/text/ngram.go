package text

import (
	"encoding/binary"

	"github.com/tenure-go/tenure/internal/kernel"
)

// NGrams counts the n-grams of a pool in rows of items.
type NGrams struct {
	Least, Most, Skip int              // length of n-grams, and the most items between two of their own
	Pool              map[string]int32 // column by key: items of 8 bytes, little-endian
}

// NGramKey appends an item to the key of an n-gram.
func NGramKey(key []byte, item int64) []byte {
	return binary.LittleEndian.AppendUint64(key, uint64(item))
}

// CountNGrams adds the n-grams of a row to counts. scratch holds a key, 8 bytes
// per item.
func CountNGrams[I kernel.Index](g *NGrams, counts []float32, row []I, scratch []byte) {
	for step := 1; step <= g.Skip+1; step++ {
		for from := range row {
			key := scratch[:0]
			for n := 1; n <= g.Most; n++ {
				at := from + (n-1)*step
				if at >= len(row) {
					break
				}
				key = NGramKey(key, int64(row[at]))
				if n < g.Least || n == 1 && step > 1 { // a single item skips nothing
					continue
				}
				if column, ok := g.Pool[string(key)]; ok {
					counts[column]++
				}
			}
		}
	}
}
