package main

import (
	"time"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
)

// rest is the pause between turns: see contest.
const rest = 15 * time.Millisecond

// measurement is one decoder with one number of threads.
type measurement struct {
	options
	decoder *decoder
	folder  string
	file    string
	threads int
	version string // of ONNX Runtime
	times   []*sides
}

// The players: Tenure with caches that its states keep, and with caches that
// are outputs like any other, and ONNX Runtime.
const (
	kept = iota
	grown
	rival
	players
)

// sides are the nanoseconds per token of the players, a value per turn: of the
// first text of a process, whose lengths are new to it, and of the same lengths
// again.
type sides struct{ first, seen [players][]float64 }

// figures are those of a row.
func (s *sides) figures(tokens int) []results.Named {
	list := []results.Named{results.Once("tokens", float64(tokens))}
	for _, part := range []struct {
		name  string
		times [players][]float64
	}{{"first", s.first}, {"seen", s.seen}} {
		t := part.times
		list = append(list, results.Samples("Tenure "+part.name+" ms", 1e-6, t[kept]), results.Samples("without states "+part.name+" ms", 1e-6, t[grown]),
			results.Samples("ONNX Runtime "+part.name+" ms", 1e-6, t[rival]), results.Ratios(part.name+", ratio", t[kept], t[rival]))
	}
	return list
}

// measure lets both engines make texts after each number of cached tokens.
func (m *measurement) measure() error {
	if m.decoder.pasts != nil {
		m.pasts = m.decoder.pasts
	}
	if m.tokens == 0 {
		m.tokens = m.decoder.tokens
	}
	for range m.pasts {
		m.times = append(m.times, new(sides))
	}
	for turn := range m.Turns {
		if err := m.turn(turn); err != nil {
			return err
		}
	}
	return nil
}

// turn starts both engines, lets them make all texts in turn, each text twice,
// and ends them.
func (m *measurement) turn(turn int) error {
	var processes []*engine.Process
	for _, name := range []string{"Tenure", "ONNX Runtime"} {
		p, err := m.Start(name)
		if err != nil {
			return err
		}
		defer p.Close()
		r, err := p.Ask(engine.Request{Do: "load", Model: m.file, Threads: m.threads, Inputs: m.decoder.base(m.folder), Arena: m.Arena})
		if err != nil {
			return err
		}
		if _, err := p.Ask(engine.Request{Do: "run", Runs: 3, Milliseconds: 1000}); err != nil {
			return err
		}
		processes, m.version = append(processes, p), contest.Version(r.About)
	}
	for i, past := range m.pasts {
		for _, to := range []*[players][]float64{&m.times[i].first, &m.times[i].seen} {
			for k := range players {
				k = (k + i + turn) % players
				q := engine.Request{Do: "grow", Sets: m.decoder.text(m.folder, past, m.tokens)}
				if k == kept {
					q.Do, q.Runs = "text", m.decoder.sizes.Positions
				}
				time.Sleep(rest)
				r, err := processes[k/rival].Ask(q)
				if err != nil {
					return err
				}
				to[k] = append(to[k], perToken(r.Nanos))
			}
		}
	}
	return nil
}

// base are the inputs of the runs before all texts, which warm up the process.
func (d *decoder) base(folder string) []engine.Input {
	list := d.text(folder, 3, 0)[0]
	for i := range list {
		list[i].Becomes = "" // the same on every run
	}
	return list
}

// perToken is the mean time of the runs of a text after the first one.
func perToken(nanos []int64) float64 {
	sum := 0.0
	for _, n := range nanos[1:] {
		sum += float64(n)
	}
	return sum / float64(len(nanos)-1)
}
