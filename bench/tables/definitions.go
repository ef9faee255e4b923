package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// definitions are all tables, in the order in which pages show them.
var definitions = []table{
	{"plans", []string{"plans"}, plans},
	{"speed", []string{"models"}, speeds},
	{"memory", []string{"memory"}, memory},
	{"chain", []string{"memory"}, chain},
	{"zoo", []string{"zoo"}, zoo},
	{"lengths", []string{"lengths"}, lengths},
	{"models", []string{"models"}, models},
	{"models, compressed", []string{"models"}, compressed},
	{"products", []string{"sgemm", "sgemm-avx2"}, products},
	{"rows", []string{"rows"}, rows},
	{"trees", []string{"trees"}, trees},
	{"neighbour", []string{"neighbour"}, neighbour},
	{"weights", []string{"weights"}, weights},
	{"hand-overs", []string{"share"}, handOvers},
	{"hand-overs, aims", []string{"share"}, aims},
	{"eager", []string{"eager", "eager-fresh"}, eager},
	{"shapes", []string{"shape"}, shapes},
	{"serve", []string{"serve"}, serving},
	{"serve, short", []string{"serve"}, servingShort},
	{"serve, together", []string{"serve"}, servedTogether},
	{"serve, overload", []string{"serve"}, servedOverload},
}

func plans(s *sheet) {
	s.header = []string{"model", "arena", "lower bound", "inputs and outputs", "weights"}
	for _, m := range [][2]string{{"densenet121", "DenseNet-121"}, {"resnet50", "ResNet-50"}, {"squeezenet", "SqueezeNet"}, {"vgg19", "VGG-19"}} {
		row := []string{m[1]}
		for _, name := range []string{"arena MiB", "lower bound MiB", "inputs and outputs MiB"} {
			row = append(row, fmt.Sprintf("%.2f", s.figure("plans", name, m[0])))
		}
		s.row(append(row, fmt.Sprintf("%.1f", s.figure("plans", "weights MiB", m[0])))...)
	}
}

// speeds is the README's choice of models, and the range of all.
func speeds(s *sheet) {
	s.header = []string{"model", "ms", "peak MiB, weights included"}
	for _, m := range [][2]string{{"resnet50", "ResNet-50"}, {"densenet121", "DenseNet-121"}, {"squeezenet", "SqueezeNet"},
		{"encoder", "sentence encoder, 6 layers"}, {"mlp", "MLP, 4 x 1024"}, {"elementwise", "elementwise chain, 64 MiB"}} {
		one := []string{m[0], "mapped", "1"}
		s.row(m[1], versus(s.figure("models", "Tenure ms", one...), s.figure("models", "ONNX Runtime ms", one...), ms),
			versus(s.figure("models", "Tenure peak MiB", one...), s.figure("models", "ONNX Runtime peak MiB", one...), whole))
	}
	span := func(name, held string) (lo, hi float64) {
		lo = math.Inf(1)
		for _, m := range words(s.result("models"), 0) {
			v := s.figure("models", name, m, held, "1")
			lo, hi = min(lo, v), max(hi, v)
		}
		return lo, hi
	}
	fast, slow := span("ratio", "mapped")
	small, large := span("peak ratio", "mapped")
	_, packed := span("peak ratio", "compressed")
	s.below = fmt.Sprintf("Across all %d models of [bench](bench/README.md), Tenure takes %.2f to %.2f times as long as ONNX Runtime on one thread. Its peak memory\nis %.2f to %.2f of ONNX Runtime's, and at most %.2f with compressed weights.",
		len(words(s.result("models"), 0)), fast, slow, small, large, packed)
}

func memory(s *sheet) {
	s.header = []string{"network", "held", "prompt", "donation", "donation, arena", "planned", "floor"}
	networks := words(s.result("memory"), 0)
	for _, n := range networks {
		row := []string{n}
		for _, how := range []string{"held", "prompt", "donation", "donation, arena"} {
			row = append(row, versus(s.figure("memory", "total MiB", n, how), s.figure("memory", "peak MiB", n, how), mib))
		}
		s.row(append(row, mib(s.figure("memory", "peak MiB", n, "planned")), mib(s.figure("memory", "peak MiB", n, "floor")))...)
	}
}

func chain(s *sheet) {
	s.header = []string{"", "peak MiB, input included"}
	n := words(s.result("memory"), 0)[0]
	for _, c := range [][2]string{{"Tenure, operands donated", "donation"}, {"Tenure, planned", "planned"}, {"ONNX Runtime (process; its arena)", "ONNX Runtime"}, {"gomlx, backend in Go (Go heap)", "gomlx, simplego"}} {
		s.row(c[0], fmt.Sprintf("%.1f", s.figure("memory", "peak MiB", n, c[1])))
	}
}

// times are the cells of one number of threads: both times, and their ratio.
func (s *sheet) times(words ...string) []string {
	return []string{versus(s.figure("models", "Tenure ms", words...), s.figure("models", "ONNX Runtime ms", words...), ms), ratio(s.figure("models", "ratio", words...))}
}

func (s *sheet) peaks(words ...string) []string {
	return []string{versus(s.figure("models", "Tenure peak MiB", words...), s.figure("models", "ONNX Runtime peak MiB", words...), whole), ratio(s.figure("models", "peak ratio", words...))}
}

func models(s *sheet) {
	s.header = []string{"model", "ms, 1 thread", "ratio", "ms, 2 threads", "ratio", "peak MiB", "ratio", "largest difference"}
	for _, m := range words(s.result("models"), 0) {
		row := slices.Concat([]string{m}, s.times(m, "mapped", "1"), s.times(m, "mapped", "2"), s.peaks(m, "mapped", "1"))
		s.row(append(row, difference(s.figure("models", "difference", m, "mapped", "1"), s.figure("models", "of", m, "mapped", "1")))...)
	}
}

// zoo compares with the faster of two opponents; ONNX Runtime alone where
// OpenVINO does not take a model.
func zoo(s *sheet) {
	s.header = []string{"model", "time, 1 thread", "interval", "time, 2 threads", "interval", "peak, of ONNX Runtime's"}
	for _, m := range words(s.result("zoo"), 0) {
		row := []string{m}
		for _, threads := range []string{"1", "2"} {
			f, ok := s.find("zoo", "to the better", m, "mapped", threads)
			if !ok {
				f, ok = s.find("zoo", "ratio", m, "mapped", threads)
			}
			if !ok {
				row = append(row, "-", "-")
				continue
			}
			row = append(row, ratio(f.Median), fmt.Sprintf("%.2f to %.2f", f.Interval[0], f.Interval[1]))
		}
		s.row(append(row, ratio(s.figure("zoo", "peak ratio", m, "mapped", "1")))...)
	}
}

func compressed(s *sheet) {
	s.header = []string{"model", "ms, 1 thread", "ratio", "ms, 2 threads", "ratio", "peak MiB, 1 thread", "ratio", "ratio, 2 threads", "load ms, 2 threads"}
	for _, m := range words(s.result("models"), 0) {
		two := []string{m, "compressed", "2"}
		row := slices.Concat([]string{m}, s.times(m, "compressed", "1"), s.times(two...), s.peaks(m, "compressed", "1"))
		s.row(append(row, ratio(s.figure("models", "peak ratio", two...)),
			versus(s.figure("models", "Tenure load ms", two...), s.figure("models", "ONNX Runtime load ms", two...), whole))...)
	}
}

// lengths are the models of which runs are timed: the others have no run of a
// length that was seen.
func lengths(s *sheet) {
	s.header = []string{"model", "first run of a length, ms", "later runs, ms", "first / later", "ONNX Runtime, first / later", "of the aim", "structures"}
	for _, m := range words(s.result("lengths"), 0) {
		if _, ok := s.find("lengths", "of the aim", m, "1"); !ok {
			continue
		}
		f := func(name string) float64 { return s.figure("lengths", name, m, "1") }
		s.row(m, versus(f("Tenure first ms"), f("ONNX Runtime first ms"), ms), versus(f("Tenure seen ms"), f("ONNX Runtime seen ms"), ms),
			ratio(f("Tenure first / seen")), ratio(f("ONNX Runtime first / seen")), ratio(f("of the aim")), whole(f("structures")))
	}
	const growing, deep = "gpt2_tiny, growing", "deep encoder"
	s.below = fmt.Sprintf("%.0f tokens of gpt2_tiny with a growing cache take %.2f of ONNX Runtime's time in a process's first text, %.2f in its second one.\nPreparing a new length of a program of %.0f steps takes %.0f µs.",
		s.figure("lengths", "tokens", growing, "1"), s.figure("lengths", "first, ratio", growing, "1"), s.figure("lengths", "seen, ratio", growing, "1"),
		s.figure("lengths", "steps", deep, "1"), s.figure("lengths", "prepare µs", deep, "1"))
}

func products(s *sheet) {
	s.header = []string{"MxNxK", "B constant, 1 thread", "B dynamic, 1", "constant, 2", "dynamic, 2", "of the AVX2 peak, constant", "dynamic"}
	for _, size := range words(s.result("sgemm"), 0) {
		row := []string{size}
		for _, threads := range []string{"1", "2"} {
			for _, b := range []string{"constant", "dynamic"} {
				row = append(row, ratio(s.figure("sgemm", "speed ratio", size, b, "avx512", threads)))
			}
		}
		for _, b := range []string{"constant", "dynamic"} {
			cell := "memory" // a product of one row
			if f, ok := s.find("sgemm-avx2", "of the peak", size, b, "avx2", "1"); ok && !strings.HasPrefix(size, "1x") {
				cell = ratio(f.Median)
			}
			row = append(row, cell)
		}
		s.row(row...)
	}
}

func rows(s *sheet) {
	const file = "rows"
	s.header = []string{"operator", "form", "ms, 1 thread", "ONNX Runtime", "of the limit", "of streaming", "ms, 2 threads", "ONNX Runtime", "of the limit", "of streaming"}
	var last []string
	for _, r := range s.result(file).Rows {
		if slices.Equal(last, r.Case[:2]) {
			continue
		}
		last = r.Case[:2]
		row := slices.Clone(last)
		for _, threads := range []string{"1", "2"} {
			c := []string{last[0], last[1], threads}
			streaming := "-"
			if f, ok := s.find(file, "of streaming", c...); ok {
				streaming = ratio(f.Median)
			}
			row = append(row, speed(s.figure(file, "Tenure ms", c...)), speed(s.figure(file, "ONNX Runtime ms", c...)), ratio(s.figure(file, "of the limit", c...)), streaming)
		}
		s.row(row...)
	}
}

func trees(s *sheet) {
	s.header = []string{"rows", "threads", "Tenure, µs", "ONNX Runtime", "leaves", "Tenure / ONNX Runtime", "Tenure / leaves"}
	for _, r := range s.result("trees").Rows {
		row := slices.Clone(r.Case)
		for _, name := range []string{"Tenure µs", "ONNX Runtime µs", "leaves µs"} {
			row = append(row, micros(s.figure("trees", name, r.Case...)))
		}
		s.row(append(row, ratio(s.figure("trees", "Tenure / ONNX Runtime", r.Case...)), ratio(s.figure("trees", "Tenure / leaves", r.Case...)))...)
	}
}

func neighbour(s *sheet) {
	s.header = []string{"model", "Tenure, two threads / one", "ONNX Runtime, two threads / one"}
	for _, m := range words(s.result("neighbour"), 0) {
		s.row(m, ratio(s.figure("neighbour", "ratio", m, "Tenure")), ratio(s.figure("neighbour", "ratio", m, "ONNX Runtime")))
	}
}

func weights(s *sheet) {
	s.header = []string{"model", "one copy", "four apart, sum", "four that share, sum", "of one copy", "private bytes per process, apart / shared", "of them arena and scratch"}
	for _, m := range words(s.result("weights"), 0) {
		f := func(name string) float64 { return s.figure("weights", name, m) }
		s.row(m, mib(f("one copy MiB")), mib(f("apart, sum MiB")), mib(f("shared, sum MiB")), fmt.Sprintf("%.3f", f("shared, of one copy")),
			versus(f("apart, private MiB"), f("shared, private MiB"), mib), speed(f("arena MiB")))
	}
}

func handOvers(s *sheet) {
	sizes := []string{"4 KiB", "64 KiB", "1 MiB", "16 MiB", "128 MiB", "1 GiB"}
	s.header = append(append([]string{"path"}, sizes...), "idle, 4 KiB")
	for _, path := range words(s.result("share"), 0) {
		if _, ok := s.find("share", "median µs", path, sizes[0], "hot"); !ok {
			continue // what was counted, and not timed
		}
		row := []string{path}
		for _, size := range sizes {
			row = append(row, micros(s.figure("share", "median µs", path, size, "hot")))
		}
		s.row(append(row, micros(s.figure("share", "median µs", path, "4 KiB", "idle")))...)
	}
}

func aims(s *sheet) {
	s.header = []string{"", "aim", "Go to Go", "Go to Python"}
	paths := []string{"Go to Go", "Go to Python"}
	add := func(what, aim string, cell func(path string) string) {
		s.row(what, aim, cell(paths[0]), cell(paths[1]))
	}
	add("1 GiB / 4 KiB", "1.10", func(path string) string {
		return ratio(s.figure("share", "median µs", path, "1 GiB", "hot") / s.figure("share", "median µs", path, "4 KiB", "hot"))
	})
	for _, mode := range []string{"hot", "idle"} {
		add("of the bare round trip, "+mode+": median of the sizes (smallest to largest)", "1.30, Python 2.00", func(path string) string {
			f, ok := s.find("share", "of the bare round trip", path, "all sizes", mode)
			if !ok || f.Interval == nil {
				s.fail("share: got no ratios of %s, %s, want some", path, mode)
				return ""
			}
			return fmt.Sprintf("%.2f (%.2f to %.2f)", f.Median, f.Interval[0], f.Interval[1])
		})
	}
	add("page faults, new maps / hand-overs", "0", func(path string) string { return steady(s, path) })
}

// steady is what showed in many hand-overs when nothing was new any more.
func steady(s *sheet, path string) string {
	faults := 0.0
	for _, name := range []string{"page faults", "producer's page faults", "consumer's page faults"} {
		if f, ok := s.find("share", name, path, "4 KiB", "steady"); ok {
			faults += f.Median
		}
	}
	return fmt.Sprintf("%.0f, %.0f / %s", faults, s.figure("share", "maps", path, "4 KiB", "steady"), micros(s.figure("share", "hand-overs", path, "4 KiB", "steady")))
}

func eager(s *sheet) {
	s.header = []string{"operation", "64 Ki", "ratio", "16 Mi", "ratio", "results made and dropped, 64 Ki"}
	for _, name := range words(s.result("eager"), 0) {
		row := []string{name}
		for _, size := range []string{"64 Ki", "16 Mi"} {
			row = append(row, eagerCells(s, name, size)...)
		}
		f, ok := s.find("eager-fresh", "ratio", name, "64 Ki", "fresh")
		if !ok {
			s.fail("eager-fresh: got no ratio of %s, want one", name)
		}
		s.row(append(row, short(f))...)
	}
}

// eagerCells are the speeds and the ratio of an operation, into bytes that are
// there where that was measured.
func eagerCells(s *sheet, name, size string) []string {
	for _, form := range []string{"into", "fresh"} {
		if f, ok := s.find("eager", "ratio", name, size, form); ok {
			return []string{versus(s.figure("eager", "Tenure GB/s", name, size, form), s.figure("eager", "numpy GB/s", name, size, form), speed), ratio(f.Median)}
		}
	}
	return []string{"-", "-"}
}

func short(f results.Figure) string {
	if f.Median >= 10 {
		return speed(f.Median)
	}
	return ratio(f.Median)
}

// shapes are the lookups of shapes of rank 4 in the trie and in what programs
// use instead.
func shapes(s *sheet) {
	const group = "HitRank4"
	s.header = []string{"ns"}
	var cases []string
	for _, r := range s.result("shape").Rows {
		if r.Case[0] == group && !slices.Contains(cases, r.Case[1]) {
			cases = append(cases, r.Case[1])
			s.header = append(s.header, "rank 4, "+r.Case[1])
		}
	}
	for _, who := range [][2]string{{"trie", "trie"}, {"unique [4]int", "unique.Make [4]int"}, {"map[[4]int]", "map[[4]int], no lock"}} {
		row := []string{who[1]}
		for _, c := range cases {
			row = append(row, micros(s.figure("shape", "ns", group, c, who[0])))
		}
		s.row(row...)
	}
}
