package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Serve answers requests with Tenure until it is told to exit or the requests
// end.
func Serve(in io.Reader, out io.Writer) error {
	s := &server{}
	defer s.close()
	return Answer(in, out, s.answer)
}

// Answer answers requests with the results of a function until a request to
// exit or the end of the requests.
func Answer(in io.Reader, out io.Writer, answer func(q Request) (Reply, error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var q Request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return fmt.Errorf("got %q, want a request: %w", lines.Text(), err)
		}
		if q.Do == "exit" {
			return nil
		}
		r, err := answer(q)
		if err != nil {
			r = Reply{Error: err.Error()}
		}
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

// arenaLimit is more than any model's outputs take.
const arenaLimit = 1 << 36

// server is one loaded model.
type server struct {
	model   *tenure.Model
	session *tenure.Session
	inputs  map[string]*tensor.Tensor
	becomes map[string]string
	outputs []string
	arena   *memory.Arena
	into    map[string]*tensor.Tensor // outputs that every run writes into the same bytes
	loaded  Request
	keeper  *keeper // nil before a text
}

func (s *server) close() {
	for _, t := range s.inputs {
		t.Release()
	}
	for _, t := range s.into {
		t.Release()
	}
	s.keeper.close()
	if s.session != nil {
		s.session.Close()
	}
	if s.model != nil {
		s.model.Close()
	}
	if s.arena != nil {
		s.arena.Close()
	}
}

func (s *server) answer(q Request) (Reply, error) {
	if s.session == nil && q.Do != "load" {
		return Reply{}, fmt.Errorf("got %q before a model, want load", q.Do)
	}
	switch q.Do {
	case "load":
		return s.load(q)
	case "run":
		return Time(q, func() error { return s.once(nil) })
	case "peak":
		return s.peak(q)
	case "outputs":
		return s.write(q)
	case "profile":
		return s.profile(q)
	case "first":
		return s.first(q)
	case "grow":
		return s.grow(q)
	case "text":
		return s.text(q)
	case "prepare":
		return s.prepare(q)
	case "counts":
		return s.counts()
	}
	return Reply{}, fmt.Errorf("got %q, want load, run, peak, outputs, profile, first, grow, text, prepare, counts or exit", q.Do)
}

func (s *server) load(q Request) (r Reply, err error) {
	if s.model != nil {
		return r, fmt.Errorf("got a second model, want one per process")
	}
	if err := s.read(q.Inputs); err != nil {
		return r, err
	}
	debug.FreeOSMemory() // of reading the inputs
	if r.Before, err = Resident("VmRSS"); err != nil {
		return r, err
	}
	s.loaded = q
	start := time.Now()
	weights, held := tenure.Mapped, "mapped"
	if q.Weights == "compressed" {
		weights, held = tenure.Compressed, q.Weights
	}
	if s.model, err = tenure.Load(q.Model, tenure.WithWeights(weights)); err != nil {
		return r, err
	}
	if s.outputs = q.Outputs; len(s.outputs) == 0 {
		for _, info := range s.model.Outputs() {
			s.outputs = append(s.outputs, info.Name)
		}
	}
	opts := []tenure.SessionOption{tenure.WithThreads(q.Threads)}
	outputs := "outputs from the system"
	if q.Arena {
		if s.arena, err = memory.NewArena(arenaLimit, memory.IO); err != nil {
			return r, err
		}
		opts, outputs = append(opts, tenure.WithOutputsFrom(s.arena)), "outputs from an arena"
	}
	if s.session, err = s.model.NewSession(opts...); err != nil {
		return r, err
	}
	if _, err := s.session.PlanFor(context.Background(), s.operands()); err != nil {
		return r, err
	}
	r.Nanos = []int64{time.Since(start).Nanoseconds()}
	if q.Into {
		if err := s.keep(); err != nil {
			return r, err
		}
	}
	r.About = fmt.Sprintf("Tenure, %s, weights %s, %s", runtime.Version(), held, outputs)
	r.After, err = Resident("VmRSS")
	return r, err
}

// read makes the inputs.
func (s *server) read(inputs []Input) error {
	s.inputs, s.becomes = map[string]*tensor.Tensor{}, map[string]string{}
	for _, in := range inputs {
		x, err := in.read()
		if err != nil {
			return err
		}
		s.inputs[in.Name] = x
		if in.Becomes != "" {
			s.becomes[in.Name] = in.Becomes
		}
	}
	return nil
}

// read makes the tensor of an input from the first numbers of its file.
func (in Input) read() (*tensor.Tensor, error) {
	dt, err := dtype.Parse(in.Type)
	if err != nil {
		return nil, err
	}
	sh, err := shape.Of(in.Dims...)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(in.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := dt.ByteLen(sh.NumElements())
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("input %s: %s: %w", in.Name, in.File, err)
	}
	x, err := tensor.FromBytes(dt, sh, data)
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", in.Name, err)
	}
	return x, nil
}

// keep runs once and keeps the outputs, for later runs to write into.
func (s *server) keep() error {
	s.into = map[string]*tensor.Tensor{}
	return s.once(func(out tenure.Outputs) error {
		for name, t := range out {
			if !s.isState(name) {
				s.into[name] = t
				delete(out, name)
			}
		}
		return nil
	})
}

func (s *server) isState(output string) bool {
	for _, name := range s.becomes {
		if name == output {
			return true
		}
	}
	return false
}

// operands are the inputs as they are passed to a run.
func (s *server) operands() tenure.Inputs {
	in := tenure.Inputs{}
	for name, t := range s.inputs {
		if s.becomes[name] != "" {
			in[name] = t.Donate()
		} else {
			in[name] = t
		}
	}
	return in
}

// once runs and hands the outputs to use before they are released; use may
// keep an output by deleting it. An output that an input becomes is kept.
func (s *server) once(use func(tenure.Outputs) error, opts ...tenure.RunOption) error {
	for name, t := range s.into {
		opts = append(opts, tenure.Into(name, t))
	}
	out, err := s.session.Run(context.Background(), s.operands(), opts...)
	if err != nil {
		return err
	}
	if use != nil {
		if err := use(out); err != nil {
			return err
		}
	}
	for name, state := range s.becomes {
		s.inputs[name] = out[state]
		delete(out, state)
	}
	return out.Release()
}

// Time answers a request to run: once untimed, then until the time of the
// request has passed, at most as often as it says.
func Time(q Request, once func() error) (r Reply, err error) {
	if err := once(); err != nil {
		return r, err
	}
	end := time.Now().Add(time.Duration(q.Milliseconds) * time.Millisecond)
	for len(r.Nanos) < max(q.Runs, 1) {
		start := time.Now()
		if err := once(); err != nil {
			return r, err
		}
		now := time.Now()
		r.Nanos = append(r.Nanos, now.Sub(start).Nanoseconds())
		if now.After(end) {
			break
		}
	}
	return r, nil
}

func (s *server) peak(q Request) (r Reply, err error) {
	if r.Before, err = Resident("VmRSS"); err != nil {
		return r, err
	}
	// 5 resets the high-water mark of the resident size: proc(5).
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return r, fmt.Errorf("resetting the high-water mark: %w", err)
	}
	for range q.Runs {
		start := time.Now()
		if err := s.once(nil); err != nil {
			return r, err
		}
		r.Nanos = append(r.Nanos, time.Since(start).Nanoseconds())
	}
	r.After, err = Resident("VmHWM")
	return r, err
}

// write runs once and writes the outputs.
func (s *server) write(q Request) (r Reply, err error) {
	once := s.once
	if len(q.Inputs) > 0 {
		once = func(use func(tenure.Outputs) error, _ ...tenure.RunOption) error { return s.onceOn(q.Inputs, use) }
	}
	return r, once(func(out tenure.Outputs) error {
		for i, name := range s.outputs {
			t := out[name]
			if t == nil {
				t = s.into[name]
			}
			b, err := t.Use()
			if err != nil {
				return fmt.Errorf("output %s: %w", name, err)
			}
			file := filepath.Join(q.Dir, strconv.Itoa(i))
			err = os.WriteFile(file, b.Data, 0o666)
			b.Release()
			if err != nil {
				return err
			}
			r.Files, r.Types = append(r.Files, file), append(r.Types, t.DType().String())
		}
		return nil
	})
}

// profile times every call of some runs.
func (s *server) profile(q Request) (r Reply, err error) {
	times := [][]int64{}
	for range q.Runs {
		at := 0
		err := s.once(nil, tenure.Watch(func(c *ir.Call, took time.Duration) {
			if at == len(times) {
				times = append(times, nil)
				r.Calls = append(r.Calls, Call{Op: c.Op.Name, Types: types(c), Node: c.Node})
			}
			times[at] = append(times[at], took.Nanoseconds())
			at++
		}))
		if err != nil {
			return r, err
		}
	}
	for i, list := range times {
		slices.Sort(list)
		r.Calls[i].Nanos = list[len(list)/2]
	}
	return r, nil
}

// types writes "operands -> results" of a call.
func types(c *ir.Call) string {
	var in, out []string
	for _, a := range c.Args {
		if a.Value != nil {
			in = append(in, a.Value.Type.String())
		}
	}
	for _, v := range c.Results {
		if v != nil {
			out = append(out, v.Type.String())
		}
	}
	return strings.Join(in, " ") + " -> " + strings.Join(out, " ")
}
