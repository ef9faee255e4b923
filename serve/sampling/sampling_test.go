package sampling

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// reference draws as Sampler does, by sorting everything.
type reference struct {
	o      Options
	random *rand.Rand
	drawn  []int64
}

func (r *reference) draw(logits []float32) int64 {
	type token struct {
		id     int64
		logit  float32
		weight float64
	}
	var all []token
	for i, v := range logits {
		if v != v {
			continue
		}
		n := 0
		for _, d := range r.drawn {
			if d == int64(i) {
				n++
			}
		}
		if n > 0 {
			v -= float32(r.o.Presence + r.o.Frequency*float64(n))
		}
		v += float32(r.o.Bias[int64(i)])
		all = append(all, token{id: int64(i), logit: v})
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b token) int {
		switch {
		case a.logit > b.logit:
			return -1
		case a.logit < b.logit:
			return 1
		}
		return 0
	})
	choose := func(id int64) int64 { r.drawn = append(r.drawn, id); return id }
	if r.o.Temperature == 0 {
		return choose(sorted[0].id)
	}
	filtered := r.o.TopK > 0 || r.o.TopP > 0 && r.o.TopP < 1
	if filtered {
		all = sorted
	}
	if r.o.TopK > 0 {
		all = all[:min(len(all), r.o.TopK)]
	}
	sum := 0.0
	for i := range all {
		all[i].weight = math.Exp((float64(all[i].logit) - float64(sorted[0].logit)) / r.o.Temperature)
	}
	byNumber := slices.Clone(all)
	if r.o.TopK == 0 {
		slices.SortFunc(byNumber, func(a, b token) int { return int(a.id - b.id) })
	}
	for _, t := range byNumber { // in the order of Sampler, so that sums round alike
		sum += t.weight
	}
	if filtered && r.o.TopP > 0 && r.o.TopP < 1 {
		part := 0.0
		for i, t := range all {
			if part += t.weight; part >= r.o.TopP*sum {
				all = all[:i+1]
				break
			}
		}
	}
	all = slices.DeleteFunc(all, func(t token) bool { return t.weight == 0 || t.weight < r.o.MinP })
	sum = 0
	for _, t := range all {
		sum += t.weight
	}
	at := r.random.Float64() * sum
	for _, t := range all {
		if at -= t.weight; at < 0 {
			return choose(t.id)
		}
	}
	return choose(all[len(all)-1].id)
}

// TestReference draws options and logits, with ties, infinities and values that
// are no numbers, and compares tokens with those of the reference.
func TestReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...float64) float64 { return list[random.IntN(len(list))] }
	var shared Scratch
	for range 3000 {
		o := Options{Temperature: pick(0, 0.3, 1, 2.5), TopK: int(pick(0, 0, 1, 3, 200)), TopP: pick(0, 0, 0.05, 0.5, 0.95, 1), MinP: pick(0, 0, 0.1, 0.9, 1),
			Presence: pick(0, 0, 1.5, -1), Frequency: pick(0, 0, 0.5, -0.25)}
		size := 1 + random.IntN(60)
		if random.IntN(4) == 0 {
			o.Bias = map[int64]float64{random.Int64N(int64(size)): pick(-100, 3), 1000: 5}
		}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		seed := random.Uint64()
		s, r := New(o, seed), &reference{o: o, random: rand.New(rand.NewPCG(seed, 0))}
		draw := s.Draw
		if random.IntN(2) == 0 { // with lists that all draws share
			draw = func(logits []float32) int64 { return s.DrawIn(&shared, logits) }
		}
		for range 8 {
			logits := make([]float32, size)
			for i := range logits {
				logits[i] = float32(random.IntN(12)) / 2
				if i > 0 && random.IntN(10) == 0 {
					logits[i] = []float32{float32(math.Inf(-1)), float32(math.NaN()), -80}[random.IntN(3)]
				}
			}
			before := slices.Clone(logits)
			if got, want := draw(logits), r.draw(logits); got != want {
				t.Fatalf("%+v, %v: got %d, want %d", o, logits, got, want)
			}
			for i := range logits {
				if math.Float32bits(before[i]) != math.Float32bits(logits[i]) {
					t.Fatal("the caller's logits were changed")
				}
			}
		}
	}
}

// TestShares draws often and counts.
func TestShares(t *testing.T) {
	logits := []float32{1, 3, 2, -5} // probabilities 0.09, 0.665, 0.245 and less than 0.001
	for name, c := range map[string]struct {
		Options
		want [4]float64
	}{
		"greedy":           {Options{}, [4]float64{0, 1, 0, 0}},
		"all":              {Options{Temperature: 1}, [4]float64{0.09, 0.665, 0.245, 0}},
		"two":              {Options{Temperature: 1, TopK: 2, TopP: 1}, [4]float64{0, 0.731, 0.269, 0}},
		"more than all":    {Options{Temperature: 1, TopK: 9, TopP: 1}, [4]float64{0.09, 0.665, 0.245, 0}},
		"most":             {Options{Temperature: 1, TopP: 0.9}, [4]float64{0, 0.731, 0.269, 0}},
		"the likeliest":    {Options{Temperature: 1, TopP: 0.1}, [4]float64{0, 1, 0, 0}},
		"half temperature": {Options{Temperature: 0.5, TopK: 2}, [4]float64{0, 0.881, 0.119, 0}},
		"likely enough":    {Options{Temperature: 1, MinP: 0.2}, [4]float64{0, 0.731, 0.269, 0}},
		"biased":           {Options{Temperature: 1, Bias: map[int64]float64{1: -100}}, [4]float64{0.269, 0, 0.731, 0}},
	} {
		s := New(c.Options, 1)
		var counts [4]float64
		const n = 20000
		for range n {
			counts[s.Draw(logits)] += 1. / n
		}
		for i := range counts {
			if math.Abs(counts[i]-c.want[i]) > 0.015 {
				t.Errorf("%s: got tokens in the shares %.3f, want %.3f", name, counts, c.want)
				break
			}
		}
	}
}

// TestPenalties draws the likeliest token until its penalty makes another one
// likelier.
func TestPenalties(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want []int64
	}{
		{Options{Frequency: 0.4}, []int64{0, 0, 0, 1, 0}},
		{Options{Presence: 1.5}, []int64{0, 1, 0, 0, 0}},
		{Options{Presence: -1}, []int64{0, 0, 0, 0, 0}},
	} {
		s := New(c.o, 0)
		var got []int64
		for range 5 {
			got = append(got, s.Draw([]float32{2, 1, 0.4}))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.o, got, c.want)
		}
	}
}

func TestNoNumbers(t *testing.T) {
	none, least := float32(math.NaN()), float32(math.Inf(-1))
	for _, logits := range [][]float32{{none, none}, {least, least}, {none, least}} {
		for _, o := range []Options{{}, {Temperature: 1}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.5}} {
			if got := New(o, 1).Draw(logits); got < 0 || got > 1 {
				t.Errorf("%v: got token %d", logits, got)
			}
		}
	}
	infinite := float32(math.Inf(1))
	if got := New(Options{Temperature: 1, TopK: 2}, 1).Draw([]float32{0, infinite, 1}); got != 1 {
		t.Errorf("an infinite logit: got token %d, want 1", got)
	}
}

func TestCheck(t *testing.T) {
	for want, o := range map[string]Options{
		"temperature: got -1":        {Temperature: -1},
		"temperature: got NaN":       {Temperature: math.NaN()},
		"temperature: got +Inf":      {Temperature: math.Inf(1)},
		"top_k: got -1":              {TopK: -1},
		"top_p: got 1.5":             {TopP: 1.5},
		"min_p: got -0.1":            {MinP: -0.1},
		"presence_penalty: got 3":    {Presence: 3},
		"frequency_penalty: got -3":  {Frequency: -3},
		"got 101 for token 5, want ": {Bias: map[int64]float64{5: 101}},
		"got 1 for token -1, want ":  {Bias: map[int64]float64{-1: 1}},
	} {
		if err := o.Check(); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
		}
	}
}

// TestLogProbs compares with sums over all tokens.
func TestLogProbs(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		logits := make([]float32, 1+random.IntN(30))
		sum := 0.0
		var want []LogProb
		for i := range logits {
			logits[i] = float32(random.IntN(8)) - 4
			sum += math.Exp(float64(logits[i]))
		}
		for i, v := range logits {
			want = append(want, LogProb{int64(i), math.Log(math.Exp(float64(v)) / sum)})
		}
		n := random.IntN(6)
		token := random.IntN(len(logits))
		of, top := LogProbs(logits, int64(token), n)
		if of.Token != int64(token) || math.Abs(of.LogProb-want[token].LogProb) > 1e-9 {
			t.Fatalf("got %v, want %v", of, want[token])
		}
		slices.SortStableFunc(want, func(a, b LogProb) int { return int(4 * (logits[b.Token] - logits[a.Token])) })
		want = want[:min(n, len(want))]
		if len(top) != len(want) {
			t.Fatalf("got %v, want %v", top, want)
		}
		for i := range top {
			if top[i].Token != want[i].Token || math.Abs(top[i].LogProb-want[i].LogProb) > 1e-9 {
				t.Fatalf("%v: got %v, want %v", logits, top, want)
			}
		}
	}
}

func TestDrawAllocatesNothing(t *testing.T) {
	logits := make([]float32, 5000)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range logits {
		logits[i] = random.Float32()
	}
	for _, o := range []Options{{}, {Temperature: 1}, {Temperature: 1, TopK: 40, TopP: 0.9}, {Temperature: 1, TopP: 0.9}, {Temperature: 1, Bias: map[int64]float64{3: 1}}} {
		s := New(o, 1)
		s.Draw(logits)
		if n := testing.AllocsPerRun(20, func() { s.Draw(logits) }); n != 0 {
			t.Errorf("%+v: got %v allocations for a draw, want none", o, n)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	logits := make([]float32, 150000)
	random := rand.New(rand.NewPCG(5, 6))
	for i := range logits {
		logits[i] = float32(random.NormFloat64())
	}
	s := New(Options{Temperature: 0.7, TopK: 50, TopP: 0.95}, 1)
	for b.Loop() {
		s.Draw(logits)
	}
}
