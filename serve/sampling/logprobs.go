package sampling

import (
	"math"
	"slices"
)

// LogProb is a token with the logarithm of its probability.
type LogProb struct {
	Token   int64
	LogProb float64
}

// LogProbs returns that of a token, as the model has it, without temperature
// and restrictions, and the n likeliest tokens, the likeliest first.
func LogProbs(logits []float32, token int64, n int) (of LogProb, top []LogProb) {
	largest, sum := float64(logits[Likeliest(logits)]), 0.0
	for _, v := range logits {
		if v == v {
			sum += math.Exp(float64(v) - largest)
		}
	}
	log := largest + math.Log(sum)
	for i, v := range logits {
		if v != v || n == 0 || len(top) == n && float64(v)-log <= top[n-1].LogProb {
			continue
		}
		l := float64(v) - log
		at := len(top)
		for at > 0 && top[at-1].LogProb < l {
			at--
		}
		if len(top) == n {
			top = top[:n-1]
		}
		top = slices.Insert(top, at, LogProb{int64(i), l})
	}
	return LogProb{token, float64(logits[token]) - log}, top
}
