package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// text measures a request whose tensor, a picture of 3 x 224 x 224, is text,
// against reading the same text with encoding/json in this process.
func (b *bench) text() error {
	dir, err := b.models("json", modelSet{"take": take()}, nil)
	if err != nil {
		return err
	}
	s, err := b.tenure(dir)
	if err != nil {
		return err
	}
	defer s.stop()
	const n = 3 * 224 * 224
	var text strings.Builder
	fmt.Fprintf(&text, `{"inputs":[{"name":"x","datatype":"FP32","shape":[%d],"data":[0.5`, n)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&text, ",%v", float32(i%1013)/1013)
	}
	text.WriteString(`]}],"parameters":{"binary_data_output":true}}`)
	body := []byte(text.String())
	ask := func() error {
		r, err := http.Post("http://"+s.address+"/v2/models/take/infer", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
			return fmt.Errorf("got %s and %v, want an answer", r.Status, err)
		}
		return nil
	}
	read := func() error {
		var q struct {
			Inputs []struct {
				Data []float32 `json:"data"`
			} `json:"inputs"`
		}
		return json.Unmarshal(body, &q)
	}
	var times [2][]float64
	for i := range b.turns + 1 {
		for j := range 2 {
			side := (i + j) % 2
			begin := time.Now()
			if err := []func() error{ask, read}[side](); err != nil {
				return err
			}
			if i > 0 {
				times[side] = append(times[side], float64(time.Since(begin).Nanoseconds())/1e6)
			}
		}
	}
	b.add([]string{"json", fmt.Sprint(n, " numbers"), "1"},
		results.Samples("whole request ms", 1, times[0]), results.Samples("encoding/json ms", 1, times[1]), results.Ratios("of encoding/json", times[0], times[1]))
	return s.end()
}
