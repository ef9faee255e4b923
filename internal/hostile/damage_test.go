package hostile_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// anatomy is where the parts of an ONNX file lie that damage can change
// without making the file unreadable, and all that is not weights.
type anatomy struct {
	numbers   [][2]int         // varints: dims, attributes, element types
	small     [][2]int         // raw tensors that are small: shapes, axes, pads
	names     map[int][][2]int // names of values by their length
	structure []int            // every byte that is not in a large raw tensor
}

// messages is the part of the ONNX schema that the anatomy follows: for a kind
// of message, the kind of each field that is one.
var messages = map[string]map[uint64]string{
	"model":      {7: "graph", 8: "opset", 25: "function"},
	"graph":      {1: "node", 5: "tensor", 11: "value", 12: "value", 13: "value"},
	"function":   {7: "node", 9: "opset"},
	"node":       {1: "name", 2: "name", 5: "attribute"},
	"attribute":  {5: "tensor", 6: "graph", 8: "numbers"},
	"tensor":     {1: "numbers", 7: "numbers", 8: "name", 9: "raw"},
	"value":      {1: "name", 2: "type"},
	"type":       {1: "tensortype"},
	"tensortype": {2: "shape"},
	"shape":      {1: "dim"},
	"dim":        {},
	"opset":      {},
}

func dissect(data []byte) *anatomy {
	a := &anatomy{names: map[int][][2]int{}}
	skip := make([]bool, len(data))
	a.message(data, 0, len(data), "model", skip)
	for i, s := range skip {
		if !s {
			a.structure = append(a.structure, i)
		}
	}
	return a
}

func (a *anatomy) message(data []byte, lo, hi int, kind string, skip []bool) {
	for at := lo; at < hi; {
		tag, n := binary.Uvarint(data[at:hi])
		if n <= 0 {
			return
		}
		at += n
		switch tag & 7 {
		case 0:
			at = a.number(data, at, hi)
		case 1:
			at += 8
		case 2:
			size, n := binary.Uvarint(data[at:hi])
			if n <= 0 || size > uint64(hi-at-n) {
				return
			}
			at += n
			a.field(data, at, at+int(size), messages[kind][tag>>3], skip)
			at += int(size)
		case 5:
			at += 4
		default:
			return
		}
	}
}

func (a *anatomy) number(data []byte, at, hi int) (end int) {
	_, n := binary.Uvarint(data[at:hi])
	end = at + max(n, 1)
	a.numbers = append(a.numbers, [2]int{at, end})
	return end
}

func (a *anatomy) field(data []byte, lo, hi int, kind string, skip []bool) {
	switch kind {
	case "": // text
	case "numbers":
		for at := lo; at < hi; {
			at = a.number(data, at, hi)
		}
	case "name":
		a.names[hi-lo] = append(a.names[hi-lo], [2]int{lo, hi})
	case "raw":
		if hi-lo <= 64 {
			a.small = append(a.small, [2]int{lo, hi})
			return
		}
		for i := lo; i < hi; i++ {
			skip[i] = true
		}
	default:
		a.message(data, lo, hi, kind, skip)
	}
}

// damage returns a copy of the file with one thing changed, and says what.
func (a *anatomy) damage(original []byte, rnd *rand.Rand) (data []byte, what string) {
	data = bytes.Clone(original)
	switch rnd.IntN(8) {
	case 0, 1:
		pos, bit := pick(a.structure, rnd), rnd.IntN(8)
		data[pos] ^= 1 << bit
		return data, fmt.Sprintf("bit %d of byte %d flipped", bit, pos)
	case 2:
		pos, with := pick(a.structure, rnd), pick([]byte{0, 1, 0x7f, 0x80, 0xff}, rnd)
		data[pos] = with
		return data, fmt.Sprintf("byte %d set to %#x", pos, with)
	case 3:
		if len(a.small) > 0 {
			at := pick(a.small, rnd)
			pos, with := at[0]+rnd.IntN(max(at[1]-at[0], 1)), pick([]byte{0, 1, 2, 3, 0x10, 0x7f, 0x80, 0xff}, rnd)
			if at[1] > at[0] {
				data[pos] = with
			}
			return data, fmt.Sprintf("byte %d, of a small tensor, set to %#x", pos, with)
		}
		fallthrough
	case 4, 5:
		at := pick(a.numbers, rnd)
		pos := at[0] + rnd.IntN(at[1]-at[0])
		with := data[pos]&0x80 | byte(pick([]int{0, 1, 2, 3, 4, 7, 8, 0x40, 0x7f, rnd.IntN(128)}, rnd))
		data[pos] = with
		return data, fmt.Sprintf("byte %d, of a number, set to %#x", pos, with)
	case 6: // a number that fills all bits
		at := pick(a.numbers, rnd)
		for i := at[0]; i < at[1]; i++ {
			data[i] |= 0x7f
		}
		return data, fmt.Sprintf("number at %d filled with ones", at[0])
	default:
		for range 100 {
			x := a.anyName(rnd)
			y := pick(a.names[x[1]-x[0]], rnd)
			if bytes.Equal(original[x[0]:x[1]], original[y[0]:y[1]]) {
				continue
			}
			copy(data[x[0]:x[1]], original[y[0]:y[1]])
			return data, fmt.Sprintf("name at %d (%q) replaced by %q", x[0], original[x[0]:x[1]], original[y[0]:y[1]])
		}
		return data[:len(data)-1], "last byte cut off"
	}
}

// anyName picks a name whose length others have too, most of the time.
func (a *anatomy) anyName(rnd *rand.Rand) [2]int {
	total := 0
	for _, list := range a.names {
		total += len(list)
	}
	k := rnd.IntN(total)
	for n := 0; ; n++ { // lengths in order: maps have none
		if k < len(a.names[n]) {
			return a.names[n][k]
		}
		k -= len(a.names[n])
	}
}

func pick[T any](list []T, rnd *rand.Rand) T { return list[rnd.IntN(len(list))] }
