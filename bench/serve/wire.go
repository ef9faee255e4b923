package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// sides are what takes turns, in the order of the first one.
var sides = []string{"HTTP", "gRPC", "plain"}

// wire measures models that do next to nothing, so that what is measured is
// the way of a tensor to the run and back.
func (b *bench) wire() error {
	dir, err := b.models("wire", modelSet{"echo": echo(), "take": take()}, nil)
	if err != nil {
		return err
	}
	ours, err := b.tenure(dir)
	if err != nil {
		return err
	}
	defer ours.stop()
	plain, err := b.plain()
	if err != nil {
		return err
	}
	defer plain.stop()
	for _, model := range []string{"take", "echo"} {
		for _, size := range b.sizes {
			if err := b.wireCase(ours, plain, model, size); err != nil {
				return fmt.Errorf("%s of %d bytes: %w", model, size, err)
			}
		}
	}
	return ours.end()
}

func (b *bench) wireCase(ours, plain *server, model string, size int) error {
	q := &request{model: model, shape: []int64{int64(size / 4)}, data: numbers(size / 4), size: size}
	if model == "take" {
		q.size = min(size, 4*taken)
	}
	ways := map[string]callers{}
	at := map[string]*server{"HTTP": ours, "gRPC": ours, "plain": plain}
	for _, side := range sides {
		if side == "HTTP" {
			c, closed := overHTTP(at[side].address, q)
			defer closed()
			ways[side] = c
			continue
		}
		c, closed, err := overRPC(at[side].address, q)
		if err != nil {
			return err
		}
		defer closed()
		ways[side] = c
	}
	heap := map[string]float64{}
	for _, side := range sides {
		got, _, err := ways[side]()(context.Background())
		if err != nil {
			return err
		}
		if !bytes.Equal(got, q.data[:q.size]) {
			return fmt.Errorf("%s: got another answer than the first %d bytes of the request", side, q.size)
		}
		if heap[side], err = perRequest(at[side], ways[side], max(20, min(500, (32<<20)/size))); err != nil {
			return err
		}
	}
	for _, clients := range b.clients {
		turns := map[string][]*turn{}
		for i := range b.turns {
			for j := range sides {
				side := sides[(i+j)%len(sides)]
				t, err := measure(ways[side], clients, q.size, b.span)
				if err != nil {
					return fmt.Errorf("%s: %w", side, err)
				}
				turns[side] = append(turns[side], t)
			}
		}
		b.add([]string{"wire, " + model, fmt.Sprint(size), fmt.Sprint(clients)}, wireFigures(turns, heap)...)
	}
	return nil
}

// wireFigures are medians of the sides, and ratios to the server without
// Tenure.
func wireFigures(turns map[string][]*turn, heap map[string]float64) (list []results.Named) {
	series := func(side string, f func(*turn) float64) (v []float64) {
		for _, t := range turns[side] {
			v = append(v, f(t))
		}
		return v
	}
	for _, kind := range []struct {
		name string
		of   func(*turn) float64
	}{
		{"p50 µs", func(t *turn) float64 { return float64(t.quantile(0.5)) / 1000 }},
		{"p99 µs", func(t *turn) float64 { return float64(t.quantile(0.99)) / 1000 }},
		{"requests/s", (*turn).perSecond},
	} {
		plain := series("plain", kind.of)
		for _, side := range sides {
			own := series(side, kind.of)
			list = append(list, results.Samples(side+" "+kind.name, 1, own))
			if side != "plain" {
				list = append(list, results.Ratios(side+" / plain, "+kind.name, own, plain))
			}
		}
	}
	for _, side := range sides {
		list = append(list, results.Once(side+" heap bytes", heap[side]))
	}
	return list
}

// say prints a row while the others are measured.
func say(words []string, figures []results.Named) {
	fmt.Fprint(os.Stderr, words)
	for _, f := range figures {
		fmt.Fprintf(os.Stderr, " %s %s;", f.Name, f.Figure)
	}
	fmt.Fprintln(os.Stderr)
}

// span is how long a turn lasts unless it is said.
const span = 50 * time.Millisecond
