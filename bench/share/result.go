package main

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// result is the report in the form of all benchmarks. A row is a path with a
// size, hot or idle. "All sizes" are the ratios to the bare round trip over the
// sizes, from the smallest to the largest; "steady" is what showed when nothing
// was new any more.
func (r *report) result() *results.Result {
	all := results.New("share", r.versions, "path", "size", "mode")
	for _, mode := range []string{"hot", "idle"} {
		samples := func(f *figures) []int64 {
			if mode == "idle" {
				return f.idle
			}
			return f.hot
		}
		for _, p := range r.paths {
			r.addPath(all, p.name, mode, samples)
		}
	}
	for _, name := range []string{goName, pythonName} {
		if st := r.steady[name]; st.handOvers > 0 {
			all.Add([]string{name, sizeText(slices.Min(r.sizes)), "steady"}, results.Once("hand-overs", float64(st.handOvers)),
				results.Once("producer's page faults", st.faults[0]), results.Once("consumer's page faults", st.faults[1]), results.Once("maps", float64(st.maps)))
		}
	}
	for _, s := range r.descriptors {
		all.Add([]string{s.who, fmt.Sprintf("%d tensors", r.many), "descriptors"}, results.Once("sockets", float64(s.sockets)), results.Once("arenas", float64(s.arenas)))
	}
	if len(r.deaths) > 0 {
		var free, end, more []int64
		for _, d := range r.deaths {
			free, end, more = append(free, d.free), append(end, d.end), append(more, d.free-d.end)
		}
		all.Add([]string{goName, "4 KiB", "killed"}, results.Samples("to a free block µs", 1e-3, free), results.Samples("to the end of file µs", 1e-3, end),
			results.Samples("difference µs", 1e-3, more), results.Once("99th percentile of it µs", float64(quantile(more, 0.99))/1e3))
	}
	return all
}

func (r *report) addPath(all *results.Result, name, mode string, samples func(*figures) []int64) {
	var ratios []float64
	for _, size := range r.sizes {
		list := samples(r.at(name, size))
		if len(list) == 0 {
			continue
		}
		row := []results.Named{results.Samples("median µs", 1e-3, list), results.Once("99th percentile µs", float64(quantile(list, 0.99))/1e3)}
		if base := samples(r.at(bareName, size)); len(base) > 0 {
			ratio := float64(quantile(list, 0.5)) / float64(quantile(base, 0.5))
			ratios = append(ratios, ratio)
			row = append(row, results.Once("of the bare round trip", ratio))
		}
		all.Add([]string{name, sizeText(size), mode}, row...)
	}
	if len(ratios) > 0 {
		all.Add([]string{name, "all sizes", mode}, results.Spread("of the bare round trip", ratios))
	}
}
