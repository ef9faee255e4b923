package ref

import "math"

// Attend is the attention of one query over keys and values in rows; the bias
// of a key may be minus infinity. Without a key that is left the result is
// zero.
func Attend(q []float64, k, v [][]float64, bias []float64, scale, softcap float64) []float64 {
	scores, peak := make([]float64, len(k)), math.Inf(-1)
	for i := range k {
		for j := range q {
			scores[i] += q[j] * k[i][j] * scale
		}
		if softcap > 0 {
			scores[i] = softcap * math.Tanh(scores[i]/softcap)
		}
		scores[i] += bias[i]
		peak = math.Max(peak, scores[i])
	}
	y, sum := make([]float64, len(v[0])), 0.0
	if math.IsInf(peak, -1) {
		return y
	}
	for _, s := range scores {
		sum += math.Exp(s - peak)
	}
	for i, s := range scores {
		for j := range y {
			y[j] += math.Exp(s-peak) / sum * v[i][j]
		}
	}
	return y
}
