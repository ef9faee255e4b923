// Command share compares the hand-over of a tensor to another process with a
// bare round trip of a socket, and with other ways.
//
//	go run ./share [-python EXECUTABLE] [-sizes 4KiB,1MiB,1GiB] [-turns N]
//
// A hand-over is measured from the moment when the producer gives a tensor to
// when it knows that the consumer has got it, read its first and last element,
// and let go. Each path has a producer and a consumer, two processes; paths
// take turns. "Idle" waits for a millisecond before each hand-over, so that
// both sides sleep. Paths in Python run peers.py with the interpreter of
// -python, which needs numpy; grpcio and torch are left out where they are not
// installed. Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

type options struct {
	python string
	sizes  []int
	turns  int
	turn   time.Duration
	kills  int
	many   int // tensors that are shared at once
	memory bool
	only   string
	output results.Output
}

func main() {
	log.SetFlags(0)
	if len(os.Args) > 1 && consume(os.Args[1]) {
		return
	}
	var o options
	sizes := flag.String("sizes", "4KiB,64KiB,1MiB,16MiB,128MiB,1GiB", "sizes of tensors")
	flag.StringVar(&o.python, "python", defaultPython(), "a Python with numpy and perhaps grpcio and torch; empty for none")
	flag.IntVar(&o.turns, "turns", 7, "how often each path runs with each size")
	flag.DurationVar(&o.turn, "turn", 120*time.Millisecond, "how long a turn lasts: one hand-over at least")
	flag.IntVar(&o.kills, "kills", 100, "how many consumers are killed; 0 for none")
	flag.IntVar(&o.many, "many", 10000, "how many tensors are shared at once to count descriptors; 0 for none")
	flag.BoolVar(&o.memory, "memory", true, "count page faults and maps")
	flag.StringVar(&o.only, "only", "", "only paths whose name contains this, and the bare round trip")
	o.output.Flags(flag.CommandLine)
	flag.Parse()
	var err error
	if o.sizes, err = parseSizes(*sizes); err == nil {
		err = run(context.Background(), os.Stdout, o)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// defaultPython is $TENURE_PYTHON, or what ort.py installs.
func defaultPython() string {
	if python := os.Getenv("TENURE_PYTHON"); python != "" {
		return python
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "python3"
	}
	return filepath.Join(cache, "tenure-bench", "bin", "python")
}

var units = []struct {
	name  string
	bytes int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseSizes(text string) (sizes []int, err error) {
	for _, word := range strings.Split(text, ",") {
		size := 0
		for _, u := range units {
			if digits, ok := strings.CutSuffix(word, u.name); ok {
				n, err := strconv.Atoi(digits)
				if err != nil || n < 1 || n > 1<<40/u.bytes {
					break
				}
				size = n * u.bytes
				break
			}
		}
		if size == 0 {
			return nil, fmt.Errorf("-sizes: got %q, want numbers with B, KiB, MiB or GiB", word)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

func sizeText(bytes int) string {
	for _, u := range units {
		if bytes >= u.bytes && bytes%u.bytes == 0 {
			return fmt.Sprintf("%d %s", bytes/u.bytes, u.name)
		}
	}
	return fmt.Sprint(bytes)
}

func run(ctx context.Context, w io.Writer, o options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	paths, missing := allPaths(self, o)
	for _, m := range missing {
		fmt.Fprintln(os.Stderr, "left out:", m)
	}
	r := &report{sizes: o.sizes, paths: paths, steady: map[string]steady{}, versions: versions(o.python)}
	if o.many > 0 { // before other paths have sockets of their own
		python := o.python
		if !slices.ContainsFunc(paths, func(p *path) bool { return p.name == pythonName }) {
			python = ""
		}
		r.many = o.many
		if r.descriptors, err = countDescriptors(ctx, self, python, o.many); err != nil {
			return err
		}
	}
	for _, size := range o.sizes {
		if err := measure(ctx, r, size, o); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, sizeText(size), "done")
	}
	if o.memory {
		for _, p := range paths {
			if p.name == goName || p.name == pythonName {
				if r.steady[p.name], err = watchMemory(ctx, p, slices.Min(o.sizes)); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
			}
		}
	}
	if o.kills > 0 {
		if r.deaths, err = killConsumers(ctx, self, o.kills); err != nil {
			return err
		}
	}
	if o.output.Wanted() {
		return o.output.Write(w, r.result(), r.write)
	}
	return r.write(w)
}

// path is a way for tensors from one process to another.
type path struct {
	name   string
	about  string
	copies bool // takes time and memory for every byte
	start  func(ctx context.Context, size int) (session, error)
}

// session is a path that is set up for one size.
type session interface {
	// turn hands over at most n tensors, waiting so long before each, until the
	// time is up, and returns how long each took in nanoseconds, in memory that
	// the next turn of any session uses again.
	turn(ctx context.Context, n int, idle, limit time.Duration) ([]int64, error)
	// processes are the producer and the consumer.
	processes() []int
	close() error
}

const (
	idleTime = time.Millisecond
	aloneAt  = 128 << 20 // paths that copy so much are set up one at a time
	slow     = 20 * time.Millisecond
	warmUp   = 500 * time.Millisecond
)

// measure lets the paths take turns with one size.
func measure(ctx context.Context, r *report, size int, o options) (err error) {
	open := map[string]session{}
	defer func() {
		for _, s := range open {
			err = errors.Join(err, s.close())
		}
	}()
	for _, p := range r.paths {
		if p.copies && size >= aloneAt {
			continue
		}
		s, err := p.start(ctx, size)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", p.name, sizeText(size), err)
		}
		open[p.name] = s
		if _, err := s.turn(ctx, 1<<20, 0, warmUp); err != nil {
			return fmt.Errorf("%s, %s: %w", p.name, sizeText(size), err)
		}
	}
	for turn := range o.turns {
		for i := range r.paths {
			p := r.paths[(i+turn)%len(r.paths)] // nobody is always behind the same neighbour
			if err := takeTurn(ctx, r, p, open[p.name], size, turn, o); err != nil {
				return fmt.Errorf("%s, %s: %w", p.name, sizeText(size), err)
			}
		}
	}
	return nil
}

func takeTurn(ctx context.Context, r *report, p *path, s session, size, turn int, o options) (err error) {
	if p.copies && size >= aloneAt {
		if turn > 2 {
			return nil // seconds and gigabytes each
		}
		if s, err = p.start(ctx, size); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.close()) }()
	}
	f := r.at(p.name, size)
	hot, err := s.turn(ctx, 1<<20, 0, o.turn)
	if err != nil {
		return err
	}
	f.hot = append(f.hot, hot...)
	if time.Duration(f.hot[len(f.hot)-1]) > slow {
		return nil // a pause makes no difference
	}
	idle, err := s.turn(ctx, 1<<20, idleTime, o.turn)
	f.idle = append(f.idle, idle...)
	return err
}

// steady counts the page faults and mappings of both processes after the
// warm-up.
type steady struct {
	handOvers int
	faults    [2]int64 // of the producer and of the consumer
	maps      int
}

const (
	settling = 4 * time.Second // until the heaps of both processes have their size
	watching = 2 * time.Second
)

// watchMemory hands one tensor over many times.
func watchMemory(ctx context.Context, p *path, size int) (st steady, err error) {
	s, err := p.start(ctx, size)
	if err != nil {
		return st, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.turn(ctx, 1<<30, 0, settling); err != nil {
		return st, err
	}
	maps, err := mapsOf(s.processes())
	if err != nil {
		return st, err
	}
	look, err := openFaults(s.processes())
	if err != nil {
		return st, err
	}
	defer func() { err = errors.Join(err, look.close()) }()
	var before, after [2]int64
	for range 2 { // the first look touches pages of its own
		if err := look.read(before[:]); err != nil {
			return st, err
		}
	}
	all, err := s.turn(ctx, 1<<30, 0, watching)
	if err != nil {
		return st, err
	}
	if err := look.read(after[:]); err != nil {
		return st, err
	}
	st.handOvers = len(all)
	for i := range st.faults {
		st.faults[i] = after[i] - before[i]
	}
	now, err := mapsOf(s.processes())
	for place := range now {
		if !maps[place] {
			st.maps++
		}
	}
	return st, err
}
