// Package sampling draws tokens from the logits of a language model.
//
//	s := sampling.New(sampling.Options{Temperature: 0.7, TopP: 0.95}, seed)
//	token := s.Draw(logits)
//
// One seed, one set of options and the same logits give the same tokens, on
// every machine whose exponential function rounds alike. Ties go to the token
// with the lower number.
//
// A [Sampler] belongs to one goroutine at a time. Its lists are used again for
// every token: a draw allocates nothing once they have their size. Samplers of
// many texts may share them ([Sampler.DrawIn]).
//
// The package is new, and its API is not promised: see ARCHITECTURE.md.
package sampling

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// Options say how a token is drawn. The zero value draws the likeliest token.
// Restrictions apply in the order of the fields.
type Options struct {
	// Presence and Frequency lower the logits of tokens that were drawn: once,
	// and by each time.
	Presence, Frequency float64
	// Bias is added to the logits of some tokens.
	Bias map[int64]float64
	// Temperature divides the logits. 0: the likeliest token.
	Temperature float64
	// TopK draws among so many likeliest tokens; 0: among all.
	TopK int
	// TopP draws among the likeliest tokens that have this probability
	// together; 0 and 1: among all.
	TopP float64
	// MinP draws among tokens that have at least this part of the probability
	// of the likeliest one.
	MinP float64
}

// ErrOptions is the kind of errors about options.
var ErrOptions = errors.New("invalid options")

// Check returns why no token can be drawn with the options: an error that
// matches [ErrOptions] and names the field.
func (o Options) Check() error {
	fault := func(name string, got any, want string) error {
		return fmt.Errorf("%s: got %v, want %s: %w", name, got, want, ErrOptions)
	}
	in := func(v, least, most float64) bool { return v >= least && v <= most } // false for NaN
	switch {
	case !in(o.Presence, -2, 2):
		return fault("presence_penalty", o.Presence, "-2 to 2")
	case !in(o.Frequency, -2, 2):
		return fault("frequency_penalty", o.Frequency, "-2 to 2")
	case !in(o.Temperature, 0, 100):
		return fault("temperature", o.Temperature, "0 to 100")
	case o.TopK < 0:
		return fault("top_k", o.TopK, "0 or more")
	case !in(o.TopP, 0, 1):
		return fault("top_p", o.TopP, "0 to 1")
	case !in(o.MinP, 0, 1):
		return fault("min_p", o.MinP, "0 to 1")
	}
	for token, b := range o.Bias {
		if token < 0 || !in(b, -100, 100) {
			return fault("logit_bias", fmt.Sprintf("%v for token %d", b, token), "-100 to 100, for tokens of 0 or more")
		}
	}
	return nil
}

// Sampler draws the tokens of one text.
type Sampler struct {
	options Options
	random  *rand.Rand
	counts  map[int64]int // of tokens that were drawn, where penalties ask for them
	scratch Scratch
}

// Scratch is the lists of a draw, some numbers for each token of a vocabulary.
// The zero value is ready. One goroutine uses it at a time.
type Scratch struct {
	changed []float32 // logits with penalties and bias
	order   []int32   // a heap of tokens, then the chosen ones behind it
	kept    []float64 // weights of tokens that may be drawn
	tokens  []int32   // the tokens of kept
}

// New returns a sampler that has drawn nothing. The options have passed
// [Options.Check].
func New(o Options, seed uint64) *Sampler {
	s := &Sampler{options: o, random: rand.New(rand.NewPCG(seed, 0))}
	if o.Presence != 0 || o.Frequency != 0 {
		s.counts = map[int64]int{}
	}
	return s
}

// Draw returns the next token by its logits: their exponentials are
// probabilities, up to a factor. A logit that is no number counts as minus
// infinity. There is at least one logit.
func (s *Sampler) Draw(logits []float32) int64 { return s.DrawIn(&s.scratch, logits) }

// DrawIn is Draw with lists that other samplers use for their draws, too.
func (s *Sampler) DrawIn(lists *Scratch, logits []float32) int64 {
	logits = s.change(lists, logits)
	best := Likeliest(logits)
	token := best
	if s.options.Temperature > 0 && logits[best] > float32(math.Inf(-1)) {
		token = lists.draw(s.options, s.random, logits, best)
	}
	if s.counts != nil {
		s.counts[int64(token)]++
	}
	return int64(token)
}

// change returns the logits with penalties and bias.
func (s *Sampler) change(lists *Scratch, logits []float32) []float32 {
	if len(s.counts) == 0 && len(s.options.Bias) == 0 {
		return logits
	}
	lists.changed = append(lists.changed[:0], logits...)
	for token, n := range s.counts {
		if token < int64(len(logits)) {
			lists.changed[token] -= float32(s.options.Presence + s.options.Frequency*float64(n))
		}
	}
	for token, b := range s.options.Bias {
		if token < int64(len(logits)) {
			lists.changed[token] += float32(b)
		}
	}
	return lists.changed
}

// Likeliest returns the place of the largest logit, the first one of equal
// ones; 0 where none is a number.
func Likeliest(logits []float32) int {
	best := -1
	for i, v := range logits {
		if v == v && (best < 0 || v > logits[best]) {
			best = i
		}
	}
	return max(0, best)
}

// draw draws by chance. best is the likeliest token.
func (s *Scratch) draw(o Options, random *rand.Rand, logits []float32, best int) int {
	largest := float64(logits[best])
	weigh := func(i int32) float64 {
		v := float64(logits[i])
		switch {
		case v != v:
			return 0
		case v == largest: // also where both are infinite
			return 1
		}
		return math.Exp((v - largest) / o.Temperature)
	}
	s.tokens, s.kept = s.tokens[:0], s.kept[:0]
	sum := 0.0
	if o.TopK > 0 || o.TopP > 0 && o.TopP < 1 {
		sum = s.keep(o, logits, weigh)
	} else {
		for i := range logits {
			sum += s.add(o, int32(i), weigh(int32(i)))
		}
	}
	at := random.Float64() * sum
	for i, w := range s.kept {
		if at -= w; at < 0 {
			return int(s.tokens[i])
		}
	}
	return int(s.tokens[len(s.tokens)-1]) // by rounding
}

// add makes a token one that may be drawn, unless it is too unlikely, and
// returns its weight.
func (s *Scratch) add(o Options, i int32, w float64) float64 {
	if w == 0 || w < o.MinP {
		return 0
	}
	s.tokens, s.kept = append(s.tokens, i), append(s.kept, w)
	return w
}

// keep takes the likeliest tokens, the likeliest first, from a heap: sorting
// all of a vocabulary takes longer than most steps of small models. It returns
// the sum of the weights of those that it kept.
func (s *Scratch) keep(o Options, logits []float32, weigh func(int32) float64) (sum float64) {
	s.order = s.order[:0]
	all := 0.0
	for i, v := range logits {
		if v == v {
			s.order = append(s.order, int32(i))
			if o.TopK == 0 {
				all += weigh(int32(i))
			}
		}
	}
	h := heap{s.order, logits}
	for i := len(h.order)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	if k := o.TopK; k > 0 { // the probability of these is 1
		end := len(h.order)
		for range min(k, end) {
			h.pop()
		}
		for i := end - 1; i >= len(h.order); i-- {
			all += weigh(s.order[i])
		}
		for i := end - 1; i >= len(h.order); i-- {
			if sum > 0 && o.enough(sum, all) {
				return sum
			}
			sum += s.add(o, s.order[i], weigh(s.order[i]))
		}
		return sum
	}
	for len(h.order) > 0 && (sum == 0 || !o.enough(sum, all)) {
		i := h.pop()
		w := s.add(o, i, weigh(i))
		if w == 0 {
			break // and so are all behind it
		}
		sum += w
	}
	return sum
}

// enough reports whether tokens of this weight have the probability of TopP.
func (o Options) enough(sum, all float64) bool {
	p := o.TopP
	return p > 0 && p < 1 && sum >= p*all
}

// heap has the likeliest token at its front.
type heap struct {
	order  []int32
	logits []float32
}

// before reports whether a is likelier than b.
func (h *heap) before(a, b int32) bool {
	x, y := h.logits[a], h.logits[b]
	return x > y || x == y && a < b
}

// down moves the token at i down to its place.
func (h *heap) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.order) {
			return
		}
		if c+1 < len(h.order) && h.before(h.order[c+1], h.order[c]) {
			c++
		}
		if !h.before(h.order[c], h.order[i]) {
			return
		}
		h.order[i], h.order[c] = h.order[c], h.order[i]
		i = c
	}
}

// pop takes the likeliest token. It stays behind the end of the list.
func (h *heap) pop() int32 {
	last := len(h.order) - 1
	top := h.order[0]
	h.order[0], h.order[last] = h.order[last], top
	h.order = h.order[:last]
	h.down(0)
	return top
}
