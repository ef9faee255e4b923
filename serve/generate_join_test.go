package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/serve/sampling"
)

// streamed asks for a completion and returns its text, or stops to read after
// some events.
func streamed(t testing.TB, ctx context.Context, url string, body map[string]any, most int) (text, finish string, err error) {
	t.Helper()
	body["stream"] = true
	data, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
		return "", "", err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/completions", bytes.NewReader(data))
	if err != nil {
		return "", "", err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", "", err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(a.Body)
		return "", "", fmt.Errorf("%d: %s", a.StatusCode, text)
	}
	lines := bufio.NewScanner(a.Body)
	for events := 0; lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text, finish, nil
		}
		var p completionReply
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			return text, finish, err
		}
		if p.Error != nil {
			return text, finish, errors.New(p.Error.Message)
		}
		text += p.Choices[0].Text
		finish = p.Choices[0].Finish
		if events++; events == most {
			return text, finish, nil
		}
	}
	return text, finish, errors.Join(lines.Err(), errors.New("the stream ended without [DONE]"))
}

// wantNothingHeld waits until no sequence has states any more.
func wantNothingHeld(t testing.TB, g *generator) {
	t.Helper()
	for g.states.figures().used != 0 || g.now().running != 0 {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended while sequences were held")
		case <-time.After(time.Millisecond):
		}
	}
	if g.pool == nil {
		return
	}
	for { // a sequence that has ended has closed its states
		s, err := g.pool.Stats()
		if err == nil {
			if s.Used != 0 || s.Sequences != 0 {
				t.Errorf("got %+v, want no block in use", s)
			}
			return
		}
	}
}

// TestJoinAndLeave sends requests of drawn prompts, lengths and ends at drawn
// times, some of whose clients stop in between. Each text is that of a plain
// loop.
func TestJoinAndLeave(t *testing.T) {
	for name, file := range map[string]func(testing.TB) []byte{
		"any lengths":      func(t testing.TB) []byte { return characters(t)["model.onnx"] },
		"one length":       gpt2,
		"one at a time":    func(testing.TB) []byte { return recurrent() },
		"lengths in masks": func(testing.TB) []byte { return grouped() },
		"merged":           func(testing.TB) []byte { return merged() },
	} {
		t.Run(name, func(t *testing.T) {
			files := characters(t)
			files["model.onnx"] = file(t)
			files["config.json"] = []byte(`{"parameters":{"prompt_part":8,"max_sequences":5,"max_length":64,"state_bytes":400000}}`)
			s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30})
			g := generatorOf(t, s, "m")
			if want := map[string]mode{"any lengths": mixed, "one length": even, "one at a time": alone, "lengths in masks": mixed, "merged": alone}[name]; g.group != want {
				t.Errorf("got %v, want %v", g.group, want)
			}
			l := newSingle(t, files["model.onnx"])
			joinAndLeave(t, h.URL, files, func(prompt string, n int) string {
				return textOf(t, files, l.write(t, idsOf(t, files, prompt), n, 8))
			})
			wantNothingHeld(t, g)
		})
	}
}

const pageText = "The plan of a model says how many bytes a run takes, before the run. A tensor is a handle on memory outside the heap."

func joinAndLeave(t *testing.T, url string, files map[string][]byte, loop func(prompt string, n int) string) {
	random := rand.New(rand.NewPCG(31, 32))
	type drawn struct {
		prompt  string
		n, most int // tokens, and events after which the client stops; 0: none
		choices int
		want    string
	}
	var requests []drawn
	count := 60
	if testing.Short() {
		count = 12
	}
	for range count {
		at, length := random.IntN(60), 1+random.IntN(30)
		d := drawn{prompt: pageText[at:][:length], n: 1 + random.IntN(30), choices: 1}
		switch random.IntN(4) {
		case 0:
			d.most = 1 + random.IntN(d.n)
		case 1:
			d.choices = 1 + random.IntN(3)
		}
		d.want = loop(d.prompt, d.n)
		requests = append(requests, d)
	}
	var all sync.WaitGroup
	turn := make(chan struct{}, 12) // requests under way
	for i, d := range requests {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			body := map[string]any{"model": "m", "prompt": d.prompt, "max_tokens": d.n, "temperature": 0}
			if d.choices > 1 {
				body["n"] = d.choices
				var pairs []any
				for k, v := range body {
					pairs = append(pairs, k, v)
				}
				a, got := ask(t, url+"/v1/completions", pairs...)
				if len(a.Choices) != d.choices {
					t.Errorf("request %d: got %d and %s, want %d choices", i, got.code, got.text, d.choices)
				}
				for _, c := range a.Choices {
					if c.Text != d.want {
						t.Errorf("request %d: %q: got %q, want %q", i, d.prompt, c.Text, d.want)
					}
				}
				return
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			text, finish, err := streamed(t, ctx, url, body, d.most)
			if err != nil || d.most == 0 && (text != d.want || finish != "length") || !strings.HasPrefix(d.want, text) {
				t.Errorf("request %d: %q: got %q, %s, %v, want %q", i, d.prompt, text, finish, err, d.want)
			}
		})
	}
	all.Wait()
}

// TestStorm sends requests whose clients go at any moment: nothing is held
// afterwards, and others are answered.
func TestStorm(t *testing.T) {
	files := characters(t)
	files["config.json"] = []byte(`{"parameters":{"prompt_part":"4","max_sequences":{"string_value":"3"},"max_length":"128","state_bytes":"200000"}}`)
	s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30, MaxQueue: 1000})
	g := generatorOf(t, s, "m")
	want := textOf(t, files, newSingle(t, files["model.onnx"]).write(t, idsOf(t, files, "A tensor"), 20, 4))
	random := rand.New(rand.NewPCG(41, 42))
	var all sync.WaitGroup
	count := 200
	if testing.Short() {
		count = 50
	}
	for range count {
		wait := time.Duration(random.IntN(20)) * time.Millisecond
		n := 1 + random.IntN(3)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, _, _ = streamed(t, ctx, h.URL, map[string]any{"model": "m", "prompt": []string{pageText[:60], "A tensor"}, "max_tokens": 60, "n": n}, 0)
		})
	}
	all.Go(func() {
		text, _, err := streamed(t, t.Context(), h.URL, map[string]any{"model": "m", "prompt": "A tensor", "max_tokens": 20, "temperature": 0}, 0)
		if err != nil || text != want {
			t.Errorf("got %q, %v in the storm, want %q", text, err, want)
		}
	})
	all.Wait()
	wantNothingHeld(t, g)
	if f := s.Memory(); f.Waiting != 0 {
		t.Errorf("got %+v after the storm, want nothing that waits", f)
	}
}

// TestStatesAreFull wants a request refused for whose states there is no room
// for some time, and at once where there never is.
func TestStatesAreFull(t *testing.T) {
	files := characters(t)
	files["config.json"] = []byte(`{"parameters":{"max_length":64,"state_bytes":98304}}`) // of two sequences
	s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30, Patience: 10 * time.Millisecond})
	g := generatorOf(t, s, "m")
	if got := g.states.budget / g.bytes(64, 0); got != 2 {
		t.Fatalf("got room for %d sequences, want 2", got)
	}
	c := &claim{bytes: g.states.budget}
	if err := g.states.acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	a, got := ask(t, h.URL+"/v1/completions", "model", "m", "prompt", "x", "max_tokens", 5)
	if got.code != 503 || got.header.Get("Retry-After") == "" || a.Error.Type != "server_error" || !strings.Contains(a.Error.Message, "no memory was free for the states") {
		t.Errorf("got %d and %s, want 503 and when to try again", got.code, got.text)
	}
	c.release()
	if a, got = ask(t, h.URL+"/v1/completions", "model", "m", "prompt", "x", "max_tokens", 5); got.code != 200 {
		t.Errorf("got %d and %s, want an answer", got.code, got.text)
	}
	a, got = ask(t, h.URL+"/v1/completions", "model", "m", "prompt", "x", "max_tokens", 60, "n", 9)
	if got.code != 413 || a.Error == nil || !strings.Contains(a.Error.Message, "want at most the 96.0 KiB") {
		t.Errorf("got %d and %s, want a request refused that never fits", got.code, got.text)
	}
	// Prompts of one request take turns where they do not fit together.
	a, got = ask(t, h.URL+"/v1/completions", "model", "m", "prompt", slices.Repeat([]string{"x"}, 20), "max_tokens", 60, "temperature", 0)
	if len(a.Choices) != 20 || a.Choices[19].Text != a.Choices[0].Text {
		t.Errorf("got %d and %s, want 20 choices", got.code, got.text)
	}
	wantNothingHeld(t, g)
}

// TestReloadWhileWriting loads a model again while it writes: the text goes on
// with the version that began it.
func TestReloadWhileWriting(t *testing.T) {
	files := characters(t)
	s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30})
	want := textOf(t, files, newSingle(t, files["model.onnx"]).write(t, idsOf(t, files, "A tensor"), 300, 512))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			text, _, err := streamed(t, t.Context(), h.URL, map[string]any{"model": "m", "prompt": "A tensor", "max_tokens": 300, "temperature": 0}, 0)
			if err != nil || text != want {
				t.Errorf("got %q, %v, want %q", text, err, want)
			}
		})
	}
	for range 3 {
		if err := s.Load(t.Context(), "m", nil); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

// TestServerEnds wants streams to end with an error when the server does.
func TestServerEnds(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, in("m", characters(t)))}, Memory: 1 << 30})
	var all sync.WaitGroup
	all.Go(func() {
		_, _, err := streamed(t, t.Context(), h.URL, map[string]any{"model": "m", "prompt": "A tensor", "max_tokens": 2000}, 0)
		if err == nil || !strings.Contains(err.Error(), "the server ends") {
			t.Errorf("got %v, want that the server ends", err)
		}
	})
	for generatorOf(t, s, "m").now().completion == 0 {
		time.Sleep(time.Millisecond)
	}
	s.cancel(ErrClosed)
	all.Wait()
}

// TestFailingStep wants one sequence to end whose run fails, and no other.
func TestFailingStep(t *testing.T) {
	files := characters(t)
	s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30})
	g := generatorOf(t, s, "m")
	want := textOf(t, files, newSingle(t, files["model.onnx"]).write(t, idsOf(t, files, "A tensor"), 200, 512))
	var all sync.WaitGroup
	all.Go(func() {
		a, got := ask(t, h.URL+"/v1/completions", "model", "m", "prompt", "A tensor", "max_tokens", 200, "temperature", 0)
		if len(a.Choices) != 1 || a.Choices[0].Text != want {
			t.Errorf("got %d and %s, want %q", got.code, got.text, want)
		}
	})
	// A token that the model does not have passes the checks of no request.
	q := &completion{textRequest: &textRequest{prompts: [][]int64{{1, 96}}, choices: 2, tokens: 3, logs: -1}, server: s, model: g.model}
	if err := q.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.each(func(event) error { return nil }); err == nil || !strings.Contains(err.Error(), "indices: got 96") {
		t.Errorf("got %v, want the error of the run", err)
	}
	all.Wait()
	wantNothingHeld(t, g)
}

// TestOneLeaves wants a sequence to end when its client goes, while another one
// of the same runs goes on.
func TestOneLeaves(t *testing.T) {
	files := characters(t)
	files["config.json"] = []byte(`{"parameters":{"max_length":300}}`)
	s, _ := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30})
	g := generatorOf(t, s, "m")
	begin := func(ctx context.Context) *completion {
		c := &completion{textRequest: &textRequest{prompts: [][]int64{{1, 2, 3}}, choices: 1, logs: -1}, server: s, model: g.model}
		if err := c.begin(ctx); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stays, leaves := begin(t.Context()), begin(ctx)
	err := leaves.each(func(event) error { cancel(errStopped); return nil })
	if !errors.Is(err, errStopped) {
		t.Errorf("got %v after %d tokens, want that the client has gone", err, leaves.total())
	}
	if err := stays.each(func(event) error { return nil }); err != nil || stays.total() != g.length-3 {
		t.Errorf("got %d tokens and %v, want %d", stays.total(), err, g.length-3)
	}
	wantNothingHeld(t, g)
}

// TestPresent wants a sequence out of the loop whose client has gone, with
// those that wait for its prompt.
func TestPresent(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	held := &share{}
	held.left.Store(3)
	out := newOutbox()
	gone := &sequence{ctx: ctx, out: out, states: held, forks: []*sequence{{ctx: ctx, out: out, states: held, index: 1}}}
	other := &sequence{ctx: t.Context(), out: out, states: held, index: 2}
	var g generator
	if got := g.present([]*sequence{gone, other}); len(got) != 2 {
		t.Errorf("got %d sequences, want 2", len(got))
	}
	cancel(errStopped)
	if got := g.present([]*sequence{gone, other}); len(got) != 1 || got[0] != other || held.left.Load() != 1 {
		t.Errorf("got %d sequences, want the other one", len(got))
	}
	for i, e := range out.take() {
		if e.index != i || !errors.Is(e.err, errStopped) {
			t.Errorf("got the event %+v, want the end of sequence %d", e, i)
		}
	}
}

// lengths is a cache of so many tokens.
type lengths int

func (l lengths) Len() int   { return int(l) }
func (lengths) Close() error { return nil }

// TestBatches wants every sequence in one run, and runs that are allowed and
// as few as there may be.
func TestBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(51, 52))
	for range 500 {
		g := &generator{most: 1 + random.IntN(5)}
		g.group = mode(random.IntN(3))
		var list []*sequence
		by := map[int]int{} // how many of each length
		for range random.IntN(20) {
			n := 1 + random.IntN(4)
			list = append(list, &sequence{cache: lengths(n)})
			by[n]++
		}
		want := map[mode]int{alone: len(list), mixed: (len(list) + g.most - 1) / g.most}
		for _, n := range by {
			want[even] += (n + g.most - 1) / g.most
		}
		batches := g.batches(list)
		var all []*sequence
		for _, b := range batches {
			all = append(all, b...)
			for _, q := range b {
				if len(b) > g.most || len(b) > 1 && (g.group == alone || g.group == even && q.cache.Len() != b[0].cache.Len()) {
					t.Fatalf("%v: got a run of %d sequences", g.group, len(b))
				}
			}
		}
		for _, q := range list {
			if !slices.Contains(all, q) {
				t.Fatal("got a sequence in no run")
			}
		}
		if len(all) != len(list) || len(batches) != want[g.group] {
			t.Fatalf("%v: got %d sequences in %d runs, want %d in %d", g.group, len(all), len(batches), len(list), want[g.group])
		}
	}
}

// TestStatedMemory measures the memory of tensors, arenas and weights while
// requests of all kinds run: it is never more than what the server states.
func TestStatedMemory(t *testing.T) {
	for name, file := range map[string]func(testing.TB) []byte{
		"any lengths": func(t testing.TB) []byte { return characters(t)["model.onnx"] }, "one length": gpt2, "one at a time": func(testing.TB) []byte { return merged() },
	} {
		t.Run(name, func(t *testing.T) {
			files := characters(t)
			files["model.onnx"] = file(t)
			files["config.json"] = []byte(`{"parameters":{"max_sequences":4,"max_length":64,"prompt_part":32,"state_bytes":800000}}`)
			before := memory.Stats().Total.Current - memory.Stats().Files
			s, h := start(t, Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30, MaxQueue: 1000})
			stop := make(chan struct{})
			var watch, all sync.WaitGroup
			most := int64(0)
			watch.Go(func() {
				for {
					f := memory.Stats()
					most = max(most, f.Total.Current-f.Files-before)
					select {
					case <-stop:
						return
					default:
					}
				}
			})
			random := rand.New(rand.NewPCG(61, 62))
			count := 40
			if testing.Short() {
				count = 10
			}
			for range count {
				n := 1 + random.IntN(60)
				pairs := []any{"model", "m", "prompt", strings.Repeat(pageText, 2)[:64-n], "max_tokens", n, "n", 1 + random.IntN(3)}
				all.Go(func() {
					if _, got := ask(t, h.URL+"/v1/completions", pairs...); got.code != 200 {
						t.Errorf("got %d and %s", got.code, got.text)
					}
				})
			}
			all.Wait()
			stop <- struct{}{}
			watch.Wait()
			if f := s.Memory(); most > f.Promised || most == 0 {
				t.Errorf("got %d bytes in use, want at most the %d that were stated", most, f.Promised)
			} else {
				t.Logf("%d of %d bytes", most, f.Promised)
			}
		})
	}
}

// TestDrawMany draws for several sequences at a time what each draws alone.
func TestDrawMany(t *testing.T) {
	files, err := readTextFiles(filepath.Join(write(t, characters(t)), "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	const vocabulary = fewLogits
	random := rand.New(rand.NewPCG(71, 72))
	o := sampling.Options{Temperature: 1, TopP: 0.9, Presence: 1}
	for _, n := range []int{1, 2, 3, 7} {
		g := &generator{files: files, vocabulary: vocabulary, scratch: make([]sampling.Scratch, 3)}
		var list []*sequence
		var alone []*sampling.Sampler
		for i := range n {
			list = append(list, &sequence{g: g, index: i, sampler: sampling.New(o, uint64(i)), logs: 1, left: 100, stream: files.tok.NewStream(true), out: newOutbox()})
			alone = append(alone, sampling.New(o, uint64(i)))
		}
		for range 3 {
			logits := make([][]float32, n)
			for i := range logits {
				for range vocabulary {
					logits[i] = append(logits[i], float32(2*random.NormFloat64()))
				}
			}
			g.drawMany(list, logits)
			for i, q := range list {
				if want := alone[i].Draw(logits[i]); q.next != want || q.out.take()[0].log.Token != want {
					t.Errorf("sequence %d of %d: got token %d, want %d", i, n, q.next, want)
				}
			}
		}
		if got := g.now().completion; got != int64(3*n) {
			t.Errorf("got %d tokens, want %d", got, 3*n)
		}
	}
}
