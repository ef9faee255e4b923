package selection

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Rows are put in order by keys: numbers of the order of the elements, sorted
// by their bytes, so that elements that are equal keep theirs.

// orderItem is an element by its key and its place.
type orderItem struct {
	key uint64
	at  int64
}

// orderWords is what an item takes of scratch that is given as int64.
const orderWords = 2

// orderItems reads scratch as n items.
func orderItems(scratch []int64, n int) []orderItem {
	if n == 0 {
		return nil
	}
	_ = scratch[orderWords*n-1]
	return unsafe.Slice((*orderItem)(unsafe.Pointer(&scratch[0])), n)
}

// orderKeys makes the items of elements that lie step apart. NaN comes first,
// or last of all if nanLast; flip turns the order round.
func orderKeys[T kernel.Number](items []orderItem, src []T, base, step int, flip uint64, nanLast bool) {
	nan := uint64(0)
	if nanLast {
		nan = math.MaxUint64
	}
	signed := T(0)-1 < 0
	switch s := any(src).(type) {
	case []float32:
		nan &= math.MaxUint32
		for i := range items {
			x := s[base+i*step] + 0 // of -0, too
			b := math.Float32bits(x)
			key := uint64(b ^ uint32(int32(b)>>31) | 1<<31&^b)
			if x != x {
				key = nan
			}
			items[i] = orderItem{key ^ flip, int64(i)}
		}
	case []float64:
		for i := range items {
			x := s[base+i*step] + 0
			b := math.Float64bits(x)
			key := b ^ uint64(int64(b)>>63) | 1<<63&^b
			if x != x {
				key = nan
			}
			items[i] = orderItem{key ^ flip, int64(i)}
		}
	default:
		for i := range items {
			key := uint64(src[base+i*step])
			if signed {
				key ^= 1 << 63
			}
			items[i] = orderItem{key ^ flip, int64(i)}
		}
	}
}

// fewItems are put in order by insertion.
const fewItems = 48

// sortItems puts items in the order of their keys, which it may lessen by a
// common number, and returns them: they may be in spare then.
func sortItems(items, spare []orderItem) []orderItem {
	if len(items) <= fewItems {
		for i, it := range items {
			k := i
			for ; k > 0 && items[k-1].key > it.key; k-- {
				items[k] = items[k-1]
			}
			items[k] = it
		}
		return items
	}
	least, most := uint64(math.MaxUint64), uint64(0)
	for i := range items {
		least, most = min(least, items[i].key), max(most, items[i].key)
	}
	for i := range items {
		items[i].key -= least
	}
	for shift := 0; shift < bits.Len64(most-least); shift += 8 {
		var place [256]int
		for i := range items {
			place[uint8(items[i].key>>shift)]++
		}
		next := 0
		for d, n := range place {
			place[d] = next
			next += n
		}
		for _, it := range items {
			d := uint8(it.key >> shift)
			spare[place[d]] = it
			place[d]++
		}
		items, spare = spare, items
	}
	return items
}

// pickItems keeps the first items of the order in kept, and the rest out.
func pickItems[T kernel.Number](kept []orderItem, src []T, base, step, n int, flip uint64) {
	var block [64]orderItem
	count := 0
	for lo := 0; lo < n; lo += len(block) {
		part := block[:min(len(block), n-lo)]
		orderKeys(part, src, base+lo*step, step, flip, false)
		for _, it := range part {
			if count == len(kept) && it.key >= kept[count-1].key {
				continue
			}
			if count < len(kept) {
				count++
			}
			k := count - 1
			for ; k > 0 && kept[k-1].key > it.key; k-- {
				kept[k] = kept[k-1]
			}
			kept[k] = orderItem{it.key, it.at + int64(lo)}
		}
	}
}
