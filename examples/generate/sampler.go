package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// sampling says how a token is drawn.
type sampling struct {
	temperature float64 // 0: the likeliest one
	topK        int     // among so many likeliest ones, 0 for all
	topP        float64 // among the likeliest ones that together have this probability
}

// sampler draws tokens. Its lists are used again for every token.
type sampler struct {
	sampling
	random *rand.Rand
	order  []int // tokens, the likeliest first
	weight []float64
}

func newSampler(s sampling, seed uint64) *sampler {
	return &sampler{sampling: s, random: rand.New(rand.NewPCG(seed, 0))}
}

// draw returns a token by its logits: their exponentials are probabilities, up
// to a factor.
func (s *sampler) draw(logits []float32) int64 {
	s.order = s.order[:0]
	for i := range logits {
		s.order = append(s.order, i)
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	if s.temperature == 0 {
		return int64(s.order[0])
	}
	if s.topK > 0 {
		s.order = s.order[:min(s.topK, len(s.order))]
	}
	sum, largest := 0.0, float64(logits[s.order[0]])
	s.weight = s.weight[:0]
	for _, i := range s.order {
		w := math.Exp((float64(logits[i]) - largest) / s.temperature)
		s.weight = append(s.weight, w)
		sum += w
	}
	kept := 0.0
	for i, w := range s.weight {
		if kept += w; kept >= s.topP*sum {
			s.weight = s.weight[:i+1]
			break
		}
	}
	at := s.random.Float64() * kept
	for i, w := range s.weight {
		if at -= w; at < 0 {
			return int64(s.order[i])
		}
	}
	return int64(s.order[len(s.weight)-1])
}
