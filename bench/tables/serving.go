package main

import (
	"fmt"
	"slices"
)

// serving compares a server with one of grpc-go that runs nothing.
func serving(s *sheet) {
	var sizes []string
	for _, size := range words(s.result("serve"), 1) {
		if _, ok := s.find("serve", "HTTP p50 µs", "wire, take", size, "1"); ok {
			sizes = append(sizes, size)
		}
	}
	serveRows(s, []string{"take", "echo"}, sizes)
}

// servingShort is the choice of the page about serving.
func servingShort(s *sheet) { serveRows(s, []string{"take"}, []string{"4", "602112"}) }

func serveRows(s *sheet, models, sizes []string) {
	s.header = []string{"model", "bytes", "clients", "µs: HTTP", "gRPC", "grpc-go", "HTTP / grpc-go", "gRPC / grpc-go", "requests/s: HTTP", "gRPC", "grpc-go", "heap bytes per request: HTTP", "gRPC", "grpc-go"}
	for _, model := range models {
		for _, size := range sizes {
			for _, clients := range []string{"1", "16"} {
				f := func(name string) float64 { return s.figure("serve", name, "wire, "+model, size, clients) }
				row := []string{model, size, clients}
				for _, side := range []string{"HTTP", "gRPC", "plain"} {
					row = append(row, micros(f(side+" p50 µs")))
				}
				row = append(row, ratio(f("HTTP / plain, p50 µs")), ratio(f("gRPC / plain, p50 µs")))
				for _, name := range []string{" requests/s", " heap bytes"} {
					for _, side := range []string{"HTTP", "gRPC", "plain"} {
						row = append(row, micros(f(side+name)))
					}
				}
				s.row(row...)
			}
		}
	}
}

// servedTogether are rows and texts that share runs.
func servedTogether(s *sheet) {
	s.header = []string{"clients", "rows/s, run together", "run alone", "together / alone", "tokens/s", "of one client's"}
	var clients []string
	for _, r := range s.result("serve").Rows {
		if r.Case[0] == "batch" && !slices.Contains(clients, r.Case[2]) {
			clients = append(clients, r.Case[2])
		}
	}
	for _, n := range clients {
		f := func(name string) float64 { return s.figure("serve", name, "batch", "1 row", n) }
		g := func(name string) float64 { return s.figure("serve", name, "generate", "64 tokens", n) }
		s.row(n, micros(f("together requests/s")), micros(f("alone requests/s")), ratio(f("together / alone, requests/s")), micros(g("tokens/s")), ratio(g("tokens/s / of the first")))
	}
	j := func(name string) float64 { return s.figure("serve", name, "json", "150528 numbers", "1") }
	s.below = fmt.Sprintf("A request of 150,528 numbers as text takes %.1f ms from the client and back. `encoding/json` takes %.1f ms to read that text.", j("whole request ms"), j("encoding/json ms"))
}

// servedOverload is what became of a server that was asked for too much.
func servedOverload(s *sheet) {
	s.header = []string{"", "default", "`--queue 1 --patience 100ms`"}
	for _, line := range []struct {
		text, name string
		format     func(float64) string
	}{
		{"capacity, requests/s", "capacity /s", whole}, {"sent, requests/s", "sent /s", whole}, {"answered, requests/s", "answered /s", whole},
		{"answered", "answered", micros}, {"refused", "refused", micros}, {"without an answer", "without an answer", whole}, {"done and not received", "done and not received", whole},
		{"p99 without load, ms", "unloaded p99 ms", ms}, {"p99 of those answered, ms", "answered p99 ms", ms}, {"ratio", "p99 / unloaded", ratio},
		{"promised at most, MiB", "promised MiB", mib}, {"with what is set aside for the process: stated, MiB", "stated MiB", mib}, {"resident at most, MiB", "resident MiB", mib},
		{"resident / stated", "resident / stated", ratio}, {"resident without files, MiB", "anonymous MiB", mib},
	} {
		row := []string{line.text}
		for _, start := range []string{"default", "--queue 1 --patience 100ms"} {
			row = append(row, line.format(s.figure("serve", line.name, "overload", start, "10")))
		}
		s.row(row...)
	}
}
