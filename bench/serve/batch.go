package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// batching measures one row at a time for a small model, run by itself and
// with the rows of other clients.
func (b *bench) batching() error {
	dir, err := b.models("batch", modelSet{"alone": perceptron(64, 256, 256, 10), "together": perceptron(64, 256, 256, 10)},
		map[string]string{"together": `{"max_batch_size":16,"dynamic_batching":{}}`})
	if err != nil {
		return err
	}
	s, err := b.tenure(dir)
	if err != nil {
		return err
	}
	defer s.stop()
	ways := map[string]callers{}
	models := []string{"together", "alone"}
	for _, model := range models {
		c, closed, err := overRPC(s.address, &request{model: model, shape: []int64{1, 64}, data: numbers(64)})
		if err != nil {
			return err
		}
		defer closed()
		ways[model] = c
	}
	for _, clients := range b.clients {
		turns := map[string][]*turn{}
		for i := range b.turns {
			for j := range models {
				model := models[(i+j)%2]
				t, err := measure(ways[model], clients, 40, b.span)
				if err != nil {
					return err
				}
				turns[model] = append(turns[model], t)
			}
		}
		var rates, medians [2][]float64
		for i, model := range models {
			for _, t := range turns[model] {
				rates[i] = append(rates[i], t.perSecond())
				medians[i] = append(medians[i], float64(t.quantile(0.5))/1000)
			}
		}
		b.add([]string{"batch", "1 row", fmt.Sprint(clients)},
			results.Samples("together requests/s", 1, rates[0]), results.Samples("alone requests/s", 1, rates[1]), results.Ratios("together / alone, requests/s", rates[0], rates[1]),
			results.Samples("together p50 µs", 1, medians[0]), results.Samples("alone p50 µs", 1, medians[1]))
	}
	return s.end()
}

// written is how many tokens each text has.
const written = 64

// generation measures texts that are written at a time.
func (b *bench) generation() error {
	s, err := b.tenure(filepath.Join(b.root, "examples", "generate"))
	if err != nil {
		return err
	}
	defer s.stop()
	rates := make([][]float64, len(b.clients))
	for i := range b.turns + 1 {
		for j := range b.clients {
			at := (i + j) % len(b.clients)
			begin := time.Now()
			if err := write(s.address, b.clients[at]); err != nil {
				return err
			}
			if i > 0 { // the first time makes plans
				rates[at] = append(rates[at], float64(written*b.clients[at])/time.Since(begin).Seconds())
			}
		}
	}
	for i, n := range b.clients {
		b.add([]string{"generate", fmt.Sprintf("%d tokens", written), fmt.Sprint(n)},
			results.Samples("tokens/s", 1, rates[i]), results.Ratios("tokens/s / of the first", rates[i], rates[0]))
	}
	return s.end()
}

// write asks for texts, all at once.
func write(address string, texts int) error {
	errs := make([]error, texts)
	var wg sync.WaitGroup
	for i := range texts {
		wg.Go(func() {
			body := fmt.Sprintf(`{"model":"generate","prompt":"A tensor is","max_tokens":%d,"temperature":0,"ignore_eos":true}`, written)
			r, err := http.Post("http://"+address+"/v1/completions", "application/json", bytes.NewReader([]byte(body)))
			if err != nil {
				errs[i] = err
				return
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			var answer struct {
				Usage struct {
					Tokens int `json:"completion_tokens"`
				} `json:"usage"`
			}
			if err == nil {
				err = json.Unmarshal(text, &answer)
			}
			if err == nil && answer.Usage.Tokens != written {
				err = fmt.Errorf("completions: got %s and %d tokens, want %d: %s", r.Status, answer.Usage.Tokens, written, text)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
