package sequence

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// LinearAttention lets Heads states [Keys, Values] of each of Batch sequences
// of Length tokens be written under keys and read by Queries queries each.
type LinearAttention struct {
	Batch, Length, Heads, Queries, Keys, Values int
	Scale                                       float64
	Delta                                       bool // writes the difference to the state, times the rate
	DecayPerKey, RatePerHead                    bool // else one decay per head, one rate for all heads
}

// LinearAttentionHead runs one state through all tokens, and leaves it as it is
// then. decay, in logarithms, and rate may be nil.
func LinearAttentionHead[T kernel.Float](l *LinearAttention, batch, head int, dst, state, q, k, v, decay, rate []T) {
	for t := range l.Length {
		token := batch*l.Length + t
		key := k[(token*l.Heads+head)*l.Keys:][:l.Keys]
		value := v[(token*l.Heads+head)*l.Values:][:l.Values]
		if decay != nil {
			for i := range l.Keys {
				at := token*l.Heads + head
				if l.DecayPerKey {
					at = at*l.Keys + i
				}
				f := T(math.Exp(float64(decay[at])))
				row := state[i*l.Values:][:l.Values]
				for j := range row {
					row[j] *= f
				}
			}
		}
		by := T(1)
		if l.Delta {
			at := token
			if l.RatePerHead {
				at = token*l.Heads + head
			}
			by = rate[at]
		}
		writeState(l, state, key, value, by)
		for n := range l.Queries {
			at := token*l.Heads*l.Queries + head*l.Queries + n
			readState(l, dst[at*l.Values:][:l.Values], state, q[at*l.Keys:][:l.Keys])
		}
	}
}

// writeState adds key * value^T, or key * (what value lacks)^T, column by
// column.
func writeState[T kernel.Float](l *LinearAttention, state, key, value []T, by T) {
	for j, v := range value {
		if l.Delta {
			var has T
			for i, f := range key {
				has += f * state[i*l.Values+j]
			}
			v = by * (v - has)
		}
		for i, f := range key {
			state[i*l.Values+j] += f * v
		}
	}
}

func readState[T kernel.Float](l *LinearAttention, dst, state, query []T) {
	clear(dst)
	for i, f := range query {
		row := state[i*l.Values:][:l.Values]
		for j := range dst {
			dst[j] += f * row[j]
		}
	}
	for j := range dst {
		dst[j] *= T(l.Scale)
	}
}
