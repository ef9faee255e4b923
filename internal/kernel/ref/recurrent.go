package ref

import "math"

// Cell is a recurrent cell in one direction: w [gates][hidden][input], r
// [gates][hidden][hidden], and biases [gates][hidden], of numbers. Activations
// are the sigmoid and tanh.
type Cell struct {
	Kind                           string // "rnn", "gru" or "lstm"
	W, R                           [][][]float64
	BiasW, BiasR                   [][]float64
	Peepholes                      [][]float64 // i, o, f; nil: none
	Clip                           float64
	InputForget, LinearBeforeReset bool
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func (c Cell) clip(x float64) float64 {
	if c.Clip > 0 {
		return math.Min(math.Max(x, -c.Clip), c.Clip)
	}
	return x
}

func (c Cell) sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-c.clip(x))) }
func (c Cell) tanh(x float64) float64    { return math.Tanh(c.clip(x)) }

// Step returns the state after x.
func (c Cell) Step(x, h, s []float64) (h1, s1 []float64) {
	h1, s1 = make([]float64, len(h)), make([]float64, len(h))
	pre := func(gate, i int) float64 {
		return dot(c.W[gate][i], x) + c.BiasW[gate][i] + dot(c.R[gate][i], h) + c.BiasR[gate][i]
	}
	peep := func(which, i int, s float64) float64 {
		if c.Peepholes == nil {
			return 0
		}
		return c.Peepholes[which][i] * s
	}
	reset := make([]float64, len(h))
	if c.Kind == "gru" {
		for i := range h {
			reset[i] = c.sigmoid(pre(1, i)) * h[i]
		}
	}
	for i := range h {
		switch c.Kind {
		case "rnn":
			h1[i] = c.tanh(pre(0, i))
		case "gru":
			z := c.sigmoid(pre(0, i))
			n := dot(c.W[2][i], x) + c.BiasW[2][i]
			if c.LinearBeforeReset {
				n += c.sigmoid(pre(1, i)) * (dot(c.R[2][i], h) + c.BiasR[2][i])
			} else {
				n += dot(c.R[2][i], reset) + c.BiasR[2][i]
			}
			h1[i] = (1-z)*c.tanh(n) + z*h[i]
		case "lstm":
			in := c.sigmoid(pre(0, i) + peep(0, i, s[i]))
			forget := c.sigmoid(pre(2, i) + peep(2, i, s[i]))
			if c.InputForget {
				forget = 1 - in
			}
			s1[i] = forget*s[i] + in*c.tanh(pre(3, i))
			h1[i] = c.sigmoid(pre(1, i)+peep(1, i, s1[i])) * math.Tanh(s1[i])
		}
	}
	return h1, s1
}
