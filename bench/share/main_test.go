package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/share"
)

// The test binary plays the consumers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && consume(os.Args[1]) {
		return
	}
	os.Exit(m.Run())
}

func skipElsewhere(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("sharing with other processes needs Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// TestPaths hands tensors over by every path that can run here.
func TestPaths(t *testing.T) {
	self := skipElsewhere(t)
	t.Chdir("..") // where the command runs
	python := defaultPython()
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		python = ""
	}
	paths, missing := allPaths(self, options{python: python})
	for _, m := range missing {
		t.Log("left out: ", m)
	}
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			s, err := p.start(t.Context(), 100_000)
			if err != nil {
				t.Fatal(err)
			}
			for _, idle := range []time.Duration{0, time.Millisecond} {
				all, err := s.turn(t.Context(), 5, idle, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if len(all) != 5 || slices.Min(all) <= 0 {
					t.Errorf("got %v, want the times of five hand-overs", all)
				}
			}
			if n := len(s.processes()); n != 2 {
				t.Errorf("got %d processes, want a producer and a consumer", n)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReport(t *testing.T) {
	self := skipElsewhere(t)
	r := &report{sizes: []int{1 << 10, 1 << 20}}
	r.paths, _ = allPaths(self, options{})
	for _, p := range r.paths {
		for i, size := range r.sizes {
			f := r.at(p.name, size)
			f.hot, f.idle = []int64{2000, 1000, 3000, 150_000}, []int64{int64(i+1) * 1000}
			if p.name == goName {
				f.hot = []int64{int64(i+2) * 1000}
			}
		}
	}
	r.steady = map[string]steady{goName: {handOvers: 1000, faults: [2]int64{2, 3}, maps: 1}}
	r.many, r.descriptors = 9, []shared{{"Go owner", 1, 2}, {"Python consumer", 1, 0}}
	r.deaths = []death{{end: 5_000_000, free: 5_020_000}, {end: 6_000_000, free: 6_010_000}, {end: 7_000_000, free: 7_030_000}}
	var b bytes.Buffer
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	for _, want := range []string{
		"µs per hand-over: median / p99 1 KiB 1 MiB",
		"bare round trip, hot 3.0 / 150 3.0 / 150",
		"Go to Go, idle 1.0 / 1.0 2.0 / 2.0",
		"Go to Go, 1 MiB / 1 KiB want <= 1.10 got 1.50",
		"Go to Go / bare round trip, hot want <= 1.30 got 1.00 (0.67 to 1.00 over the sizes)",
		"Go to Go, page faults and maps want 0 got 2 of the producer and 3 of the consumer, 1 maps, in 1000 hand-overs",
		"descriptors with 9 tensors shared, Go owner want <= 4 got 3: 1 sockets, 2 arenas",
		"descriptors with 9 tensors shared, Python consumer want <= 4 got 1: 1 sockets, 0 arenas",
		"from SIGKILL to a free block, median of 3 want <= the kernel's end of file + 1000 µs got 6010 µs, end of file 6000 µs, difference 20.0 µs (p99 30.0)",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("got\n%s\nwant a line %q", strings.Join(lines, "\n"), want)
		}
	}
}

// TestResult: the form of all benchmarks has the figures that the table has.
func TestResult(t *testing.T) {
	r := &report{sizes: []int{1 << 10, 1 << 20}, paths: []*path{{name: bareName}, {name: goName}}}
	for _, size := range r.sizes {
		r.at(bareName, size).hot = []int64{2000, 1000, 3000}
		r.at(goName, size).hot = []int64{int64(size) * 4}
		r.at(goName, size).idle = []int64{7000}
	}
	r.steady = map[string]steady{goName: {handOvers: 1000, faults: [2]int64{2, 3}, maps: 1}}
	r.many, r.descriptors = 9, []shared{{"Go owner", 1, 2}}
	r.deaths = []death{{end: 5_000_000, free: 5_020_000}}
	all := r.result()
	for _, c := range []struct {
		words  string
		figure string
		want   float64
	}{
		{"bare round trip;1 KiB;hot", "median µs", 2}, {"bare round trip;1 KiB;hot", "of the bare round trip", 1},
		{"Go to Go;1 KiB;hot", "median µs", 4.096}, {"Go to Go;1 KiB;hot", "99th percentile µs", 4.096}, {"Go to Go;1 MiB;hot", "of the bare round trip", 4 << 20 / 2000.0},
		{"Go to Go;1 KiB;idle", "median µs", 7}, {"Go to Go;all sizes;hot", "of the bare round trip", 4 << 20 / 2000.0},
		{"Go to Go;1 KiB;steady", "hand-overs", 1000}, {"Go to Go;1 KiB;steady", "consumer's page faults", 3}, {"Go owner;9 tensors;descriptors", "arenas", 2},
		{"Go to Go;4 KiB;killed", "difference µs", 20},
	} {
		row, ok := all.Find(strings.Split(c.words, ";")...)
		if got := row.Figures[c.figure].Median; !ok || got != c.want {
			t.Errorf("%s, %s: got %v (%v), want %v", c.words, c.figure, got, ok, c.want)
		}
	}
	if _, ok := all.Find(goName, "all sizes", "idle"); ok {
		t.Error("got a ratio without a bare round trip")
	}
}

func TestDescriptorsAndDeaths(t *testing.T) {
	self := skipElsewhere(t)
	t.Chdir("..") // where the command runs
	python := defaultPython()
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		python = ""
	}
	got, err := countDescriptors(t.Context(), self, python, 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []shared{{"Go owner", 1, 1}, {"Go consumer", 1, 0}, {"Python owner", 1, 1}, {"Python consumer", 1, 0}}
	if python == "" {
		want = want[:2]
	}
	if !slices.Equal(got, want) {
		t.Errorf("with 100 tensors: got %v, want %v", got, want)
	}
	deaths, err := killConsumers(t.Context(), self, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range deaths {
		if d.end <= 0 || d.free <= 0 {
			t.Errorf("got %+v, want times", d)
		}
	}
}

// TestCountOpen: descriptors that were closed in between do not count, nor do
// those that were open all the time.
func TestCountOpen(t *testing.T) {
	skipElsewhere(t)
	going, _ := socketPair(t), socketPair(t)
	before, err := descriptors(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	going.Close()
	socketPair(t)
	if got, err := countOpen("this process", os.Getpid(), before); got != (shared{"this process", 1, 0}) || err != nil {
		t.Errorf("got %v, %v, want the socket that was opened since", got, err)
	}
}

// socketPair returns an end of a connection whose other end is closed.
func socketPair(t *testing.T) *os.File {
	a, b, err := share.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	b.Close()
	return a
}

func TestMemoryIsSeen(t *testing.T) {
	skipElsewhere(t)
	look, err := openFaults([]int{os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer look.close()
	var before, after [1]int64
	if err := look.read(before[:]); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := look.read(after[:]); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a look makes %v objects, want none: they are its own faults", n)
	}
	fresh := make([]byte, 16<<20)
	for i := 0; i < len(fresh); i += 4096 {
		fresh[i] = 1
	}
	if err := look.read(after[:]); err != nil {
		t.Fatal(err)
	}
	if after[0] <= before[0] {
		t.Errorf("got %d faults before 16 MiB were touched and %d after, want more", before[0], after[0])
	}
	if _, err := openFaults([]int{-1}); err == nil {
		t.Error("got no error for a process that is not there, want one")
	}
	if n, err := faultsIn([]byte("7 (a) b) S 1 2 3 4 -1 6 700 8 90 10 11")); n != 790 || err != nil {
		t.Errorf("got %d, %v, want 700 minor faults and 90 major ones", n, err)
	}
	if _, err := faultsIn([]byte("7 (a) S 1 2")); err == nil {
		t.Error("got no error for a line that is cut off, want one")
	}
	s, err := allShare(t)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := mapsOf(s.processes())
	if err != nil {
		t.Fatal(err)
	}
	if len(maps) != 2 {
		t.Errorf("got maps %v, want the arena in both processes", maps)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// allShare hands one tensor from Go to Go.
func allShare(t *testing.T) (session, error) {
	self := skipElsewhere(t)
	s, err := startLender(t.Context(), exec.Command(self, consumeShare), 4096)
	if err != nil {
		return nil, err
	}
	_, err = s.turn(context.Background(), 2, 0, time.Minute)
	return s, err
}

func TestSizes(t *testing.T) {
	got, err := parseSizes("4KiB,16MiB,1GiB,12B")
	if err != nil || !slices.Equal(got, []int{4096, 16 << 20, 1 << 30, 12}) {
		t.Errorf("got %v, %v, want four sizes", got, err)
	}
	for _, bad := range []string{"", "12", "KiB", "0KiB", "-1B", "1KiB,,2KiB", "99999999999999GiB"} {
		if got, err := parseSizes(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got)
		}
	}
	for size, want := range map[int]string{4096: "4 KiB", 1 << 30: "1 GiB", 1500: "1500 B"} {
		if got := sizeText(size); got != want {
			t.Errorf("%d: got %q, want %q", size, got, want)
		}
	}
}
