package sequence_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

func TestLinearAttention(t *testing.T) {
	r := kerneltest.NewRand(152)
	for mode := range 16 {
		l := sequence.LinearAttention{Batch: 2, Length: 3, Heads: 2, Queries: 2, Keys: 4, Values: 5, Scale: 0.5, Delta: mode&1 != 0, DecayPerKey: mode&4 != 0, RatePerHead: mode&8 != 0}
		gated := mode&2 != 0
		q, k, v := kerneltest.Uniform(r, 2*3*4*4), kerneltest.Uniform(r, 2*3*2*4), kerneltest.Uniform(r, 2*3*2*5)
		decay, rate, past := kerneltest.Uniform(r, 2*3*2*4), kerneltest.Uniform(r, 2*3*2), kerneltest.Uniform(r, 2*2*4*5)
		s := kerneltest.NewSpace(t)
		dst, state := kerneltest.Out[float32](s, "dst", 2*3*4*5), kerneltest.InOut(s, "state", past)
		sq, sk, sv, sd, sr := kerneltest.In(s, "q", q), kerneltest.In(s, "k", k), kerneltest.In(s, "v", v), kerneltest.In(s, "decay", decay), kerneltest.In(s, "rate", rate)
		if !gated {
			sd = nil
		}
		kerneltest.Backwards(4, func(i int) {
			sequence.LinearAttentionHead(&l, i/2, i%2, dst, state[i*20:(i+1)*20], sq, sk, sv, sd, sr)
		})
		s.Check()
		for i := range 8 { // batch, head, query
			batch, head, query := i/4, i/2%2, i%2
			rows := func(x []float32, heads, h, size int) (list [][]float64) {
				for t := range 3 {
					list = append(list, kerneltest.F64s(x[((batch*3+t)*heads+h)*size:][:size]))
				}
				return list
			}
			var own [][]float64
			for k := range 4 {
				own = append(own, kerneltest.F64s(past[((batch*2+head)*4+k)*5:][:5]))
			}
			fall, rates := rows(decay, 2, head, 4), []float64{}
			for t := range 3 {
				for k := range 4 {
					switch {
					case !gated:
						fall[t][k] = 0
					case !l.DecayPerKey:
						fall[t][k] = float64(decay[(batch*3+t)*2+head])
					}
				}
				at := batch*3 + t
				if l.RatePerHead {
					at = at*2 + head
				}
				rates = append(rates, float64(rate[at]))
			}
			want := ref.LinearAttention(own, rows(q, 4, head*2+query, 4), rows(k, 2, head, 4), rows(v, 2, head, 5), fall, rates, l.Delta, 0.5)
			for t3 := range 3 {
				kerneltest.WantClose(t, dst[((batch*3+t3)*4+head*2+query)*5:][:5], want[t3], 1e-5)
			}
			for k := range 4 {
				kerneltest.WantClose(t, state[((batch*2+head)*4+k)*5:][:5], own[k], 1e-5)
			}
		}
	}
}
