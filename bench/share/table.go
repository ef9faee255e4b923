package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report is all that was measured.
type report struct {
	sizes       []int
	paths       []*path
	figures     map[string]*figures
	steady      map[string]steady
	many        int // tensors that were shared at once to count descriptors
	descriptors []shared
	deaths      []death
	versions    map[string]string // of Python and the libraries of other paths
}

// figures are a path's with one size.
type figures struct{ hot, idle []int64 }

func (r *report) at(name string, size int) *figures {
	if r.figures == nil {
		r.figures = map[string]*figures{}
	}
	key := fmt.Sprintf("%s %d", name, size)
	if r.figures[key] == nil {
		r.figures[key] = &figures{}
	}
	return r.figures[key]
}

// quantile returns the sample that a part p of all does not exceed, 0 without
// any.
func quantile(all []int64, p float64) int64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

func micros(ns int64) string {
	us := float64(ns) / 1000
	switch {
	case ns == 0:
		return "-"
	case us < 100:
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

func (r *report) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "µs per hand-over: median / p99\t")
	for _, size := range r.sizes {
		fmt.Fprintf(t, "%s\t", sizeText(size))
	}
	fmt.Fprintln(t)
	for _, idle := range []bool{false, true} {
		for _, p := range r.paths {
			mode := "hot"
			if idle {
				mode = "idle"
			}
			fmt.Fprintf(t, "%s, %s\t", p.name, mode)
			for _, size := range r.sizes {
				f := r.at(p.name, size)
				all := f.hot
				if idle {
					all = f.idle
				}
				fmt.Fprintf(t, "%s / %s\t", micros(quantile(all, 0.5)), micros(quantile(all, 0.99)))
			}
			fmt.Fprintln(t)
		}
	}
	fmt.Fprintln(t)
	r.writeGoals(t)
	fmt.Fprintln(t)
	for _, p := range r.paths {
		fmt.Fprintf(t, "%s\t%s\n", p.name, p.about)
	}
	return t.Flush()
}

// writeGoals prints the goals beside the results.
func (r *report) writeGoals(w io.Writer) {
	goal := func(what, want, got string) { fmt.Fprintf(w, "%s\twant %s\tgot %s\n", what, want, got) }
	for _, name := range []string{goName, pythonName} {
		if !slices.ContainsFunc(r.paths, func(p *path) bool { return p.name == name }) {
			continue
		}
		least, most := slices.Min(r.sizes), slices.Max(r.sizes)
		small, large := quantile(r.at(name, least).hot, 0.5), quantile(r.at(name, most).hot, 0.5)
		goal(fmt.Sprintf("%s, %s / %s", name, sizeText(most), sizeText(least)), "<= 1.10", ratio(large, small))
		want := "<= 1.30"
		if name == pythonName {
			want = "<= 2.00"
		}
		goal(name+" / bare round trip, hot", want, r.against(name, func(f *figures) []int64 { return f.hot }))
		goal(name+" / bare round trip, idle", want, r.against(name, func(f *figures) []int64 { return f.idle }))
		if st := r.steady[name]; st.handOvers > 0 {
			goal(name+", page faults and maps", "0", fmt.Sprintf("%d of the producer and %d of the consumer, %d maps, in %d hand-overs",
				st.faults[0], st.faults[1], st.maps, st.handOvers))
		}
	}
	for _, s := range r.descriptors {
		goal(fmt.Sprintf("descriptors with %d tensors shared, %s", r.many, s.who), "<= 4", fmt.Sprintf("%d: %d sockets, %d arenas", s.sockets+s.arenas, s.sockets, s.arenas))
	}
	if len(r.deaths) > 0 {
		var free, end, more []int64
		for _, d := range r.deaths {
			free, end, more = append(free, d.free), append(end, d.end), append(more, d.free-d.end)
		}
		goal(fmt.Sprintf("from SIGKILL to a free block, median of %d", len(r.deaths)), "<= the kernel's end of file + 1000 µs",
			fmt.Sprintf("%s µs, end of file %s µs, difference %s µs (p99 %s)", micros(quantile(free, 0.5)), micros(quantile(end, 0.5)), micros(quantile(more, 0.5)), micros(quantile(more, 0.99))))
	}
}

func ratio(a, b int64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}

// against is the median ratio to the bare round trip over all sizes, and the
// largest.
func (r *report) against(name string, samples func(*figures) []int64) string {
	var all []float64
	for _, size := range r.sizes {
		if base := quantile(samples(r.at(bareName, size)), 0.5); base > 0 {
			all = append(all, float64(quantile(samples(r.at(name, size)), 0.5))/float64(base))
		}
	}
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.2f (%.2f to %.2f over the sizes)", all[len(all)/2], all[0], all[len(all)-1])
}
