package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
)

// The aim for the first run of a length: so many times a later one, or so many
// nanoseconds per step more, whichever is longer.
const (
	aimRatio = 1.2
	aimNanos = 500
)

// rest is the pause between turns: see contest.
const rest = 15 * time.Millisecond

// measurement is one case with one number of threads.
type measurement struct {
	options
	data
	name    string
	threads int
	version string // of ONNX Runtime
}

// measure returns the figures of the case; none if its model is not there.
func (m *measurement) measure() ([]results.Named, error) {
	s := deep
	for _, other := range sweeps {
		if other.name == m.name || m.name == growingName && other.folder() == "gpt2_tiny" {
			s = other
		}
	}
	file, err := s.write(m.folder)
	if err != nil {
		log.Printf("left out: %v", err)
		return nil, nil
	}
	switch m.name {
	case growingName:
		return m.grow(file, s)
	case deep.name:
		return m.plan(file, s)
	}
	return m.sweep(file, s)
}

// pair starts both engines with the model loaded, lets turn use them, and ends
// them.
func (m *measurement) pair(file string, s sweep, turn func(tenure, ort *engine.Process) error) error {
	var list []*engine.Process
	for _, name := range []string{"Tenure", "ONNX Runtime"} {
		p, err := m.Start(name)
		if err != nil {
			return err
		}
		defer p.Close()
		r, err := p.Ask(engine.Request{Do: "load", Model: file, Threads: m.threads, Inputs: m.base(s), Arena: m.Arena})
		if err != nil {
			return err
		}
		if _, err := p.Ask(engine.Request{Do: "run", Runs: 3, Milliseconds: 1000}); err != nil {
			return err
		}
		list, m.version = append(list, p), contest.Version(r.About)
	}
	return turn(list[0], list[1])
}

// base are the inputs of the runs that stand between others.
func (m *measurement) base(s sweep) []engine.Input {
	list := m.in(s.inputs(s.base))
	for i := range list {
		list[i].Becomes = "" // the same on every run
	}
	return list
}

// sides are one figure of both engines, a value per turn.
type sides struct{ tenure, ort []float64 }

// sweepFigures are the figures of a sweep, a value per turn: the median over
// the lengths.
type sweepFigures struct {
	first, seen, ratio    sides
	perStep, aim          []float64
	firstRatio, seenRatio []float64
	counts                map[string]int64
	difference, largest   float64
}

// sweep runs a model at all lengths.
func (m *measurement) sweep(file string, s sweep) ([]results.Named, error) {
	f := &sweepFigures{}
	for turn := range m.Turns {
		err := m.pair(file, s, func(tenure, ort *engine.Process) error { return m.turn(f, s, turn, tenure, ort) })
		if err != nil {
			return nil, err
		}
	}
	return append([]results.Named{
		results.Once("lengths", float64(len(s.lengths))),
		results.Once("steps", f.counts["steps"]), results.Once("structures", f.counts["structures"]), results.Once("instances", f.counts["instances"]),
	}, f.named()...), nil
}

// named are the figures with their names.
func (f *sweepFigures) named() []results.Named {
	return []results.Named{
		results.Samples("Tenure first ms", 1e-6, f.first.tenure), results.Samples("Tenure seen ms", 1e-6, f.seen.tenure), results.Samples("Tenure first / seen", 1, f.ratio.tenure),
		results.Samples("µs per step", 1e-3, f.perStep), results.Samples("of the aim", 1, f.aim),
		results.Samples("ONNX Runtime first ms", 1e-6, f.first.ort), results.Samples("ONNX Runtime seen ms", 1e-6, f.seen.ort), results.Samples("ONNX Runtime first / seen", 1, f.ratio.ort),
		results.Samples("first, ratio", 1, f.firstRatio), results.Samples("seen, ratio", 1, f.seenRatio),
		results.Once("difference", f.difference), results.Once("of", f.largest),
	}
}

// turn lets both processes run all lengths, each in turn, and adds a value to
// every figure.
func (m *measurement) turn(f *sweepFigures, s sweep, turn int, tenure, ort *engine.Process) error {
	players := []*engine.Process{tenure, ort}
	var first, seen [2][]float64
	for at, n := range s.lengths {
		inputs := m.in(s.inputs(n))
		for k := range players {
			k = (k + at + turn) % 2
			time.Sleep(rest)
			r, err := players[k].Ask(engine.Request{Do: "first", Inputs: inputs, Runs: m.runs})
			if err != nil {
				return err
			}
			first[k], seen[k] = append(first[k], float64(r.Nanos[0])), append(seen[k], float64(contest.Median(r.Nanos[1:])))
		}
	}
	r, err := tenure.Ask(engine.Request{Do: "counts"})
	if err != nil {
		return err
	}
	f.counts = r.Counts
	over := func(value func(i int) float64) float64 { return medianOver(s.lengths, value) }
	for k, side := range []func(*sides) *[]float64{func(s *sides) *[]float64 { return &s.tenure }, func(s *sides) *[]float64 { return &s.ort }} {
		add := func(to *sides, value func(i int) float64) { *side(to) = append(*side(to), over(value)) }
		add(&f.first, func(i int) float64 { return first[k][i] })
		add(&f.seen, func(i int) float64 { return seen[k][i] })
		add(&f.ratio, func(i int) float64 { return first[k][i] / seen[k][i] })
	}
	steps := float64(r.Counts["steps"])
	f.perStep = append(f.perStep, over(func(i int) float64 { return (first[0][i] - seen[0][i]) / steps }))
	f.aim = append(f.aim, over(func(i int) float64 { return first[0][i] / max(aimRatio*seen[0][i], seen[0][i]+aimNanos*steps) }))
	f.firstRatio = append(f.firstRatio, over(func(i int) float64 { return first[0][i] / first[1][i] }))
	f.seenRatio = append(f.seenRatio, over(func(i int) float64 { return seen[0][i] / seen[1][i] }))
	if turn > 0 {
		return nil
	}
	return m.compare(f, s, players)
}

func medianOver(lengths []length, value func(i int) float64) float64 {
	list := make([]float64, len(lengths))
	for i := range list {
		list[i] = value(i)
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// compare sets the largest difference of the outputs over all lengths.
func (m *measurement) compare(f *sweepFigures, s sweep, players []*engine.Process) error {
	for at, n := range s.lengths {
		var replies [2]engine.Reply
		for k, p := range players {
			dir := filepath.Join(m.folder, fmt.Sprintf("outputs%d", k))
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			r, err := p.Ask(engine.Request{Do: "outputs", Inputs: m.in(s.inputs(n)), Dir: dir})
			if err != nil {
				return err
			}
			replies[k] = r
		}
		d, l, err := contest.Compare(replies[0], replies[1])
		if err != nil {
			return fmt.Errorf("length %v: %w", n, err)
		}
		if at == 0 || d > f.difference {
			f.difference, f.largest = d, l
		}
	}
	return nil
}

// grow lets a decoder make tokens, with caches that grow by one with each.
func (m *measurement) grow(file string, s sweep) ([]results.Named, error) {
	var times [2]sides // of tokens whose length is new, and of the same ones again
	for turn := range m.Turns {
		err := m.pair(file, s, func(tenure, ort *engine.Process) error {
			for round := range times {
				for k := range 2 {
					k = (k + turn) % 2
					nanos, err := m.decode([]*engine.Process{tenure, ort}[k])
					if err != nil {
						return err
					}
					to := []*[]float64{&times[round].tenure, &times[round].ort}[k]
					*to = append(*to, nanos)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	first, seen := times[0], times[1]
	return []results.Named{
		results.Once("tokens", float64(m.tokens)),
		results.Samples("Tenure first ms", 1e-6, first.tenure), results.Samples("Tenure seen ms", 1e-6, seen.tenure),
		results.Samples("ONNX Runtime first ms", 1e-6, first.ort), results.Samples("ONNX Runtime seen ms", 1e-6, seen.ort),
		results.Ratios("first, ratio", first.tenure, first.ort), results.Ratios("seen, ratio", seen.tenure, seen.ort),
	}, nil
}

// decode lets an engine read a prompt and make tokens, and returns the
// nanoseconds per token.
func (m *measurement) decode(p *engine.Process) (float64, error) {
	const prompt = 7
	sets := growing(prompt, m.tokens)
	for _, set := range sets {
		m.in(set)
	}
	time.Sleep(rest)
	r, err := p.Ask(engine.Request{Do: "grow", Sets: sets})
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, nanos := range r.Nanos[1:] {
		sum += float64(nanos)
	}
	return sum / float64(m.tokens), nil
}

// plan times the planning of a program of some 300 steps for new lengths.
func (m *measurement) plan(file string, s sweep) ([]results.Named, error) {
	var times []float64
	counts := map[string]int64{}
	for range m.Turns {
		err := m.pair(file, s, func(tenure, _ *engine.Process) error {
			nanos := make([]float64, len(s.lengths))
			for i, n := range s.lengths {
				time.Sleep(rest)
				r, err := tenure.Ask(engine.Request{Do: "prepare", Inputs: m.in(s.inputs(n))})
				if err != nil {
					return err
				}
				nanos[i] = float64(r.Nanos[0])
			}
			times = append(times, medianOver(s.lengths, func(i int) float64 { return nanos[i] }))
			r, err := tenure.Ask(engine.Request{Do: "counts"})
			counts = r.Counts
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return []results.Named{
		results.Once("lengths", float64(len(s.lengths))),
		results.Once("steps", counts["steps"]), results.Once("structures", counts["structures"]), results.Once("instances", counts["instances"]),
		results.Samples("prepare µs", 1e-3, times),
	}, nil
}
