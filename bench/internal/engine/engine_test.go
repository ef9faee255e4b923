package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/tensor"
)

func TestMain(m *testing.M) {
	ServeIfAsked()
	os.Exit(m.Run())
}

// count writes a model that adds one to a state, and a state of two numbers.
func count(t *testing.T) (model string, state Input) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("resident sizes are read from /proc")
	}
	g := onnxfile.New(13)
	g.Input("n", onnxfile.F32, 2)
	g.Scalar("one", 1)
	g.Node("Add", []string{"n", "one"}, []string{"next"})
	g.Node("Neg", []string{"next"}, []string{"y"})
	g.Output("next", onnxfile.F32)
	g.Output("y", onnxfile.F32)
	dir := t.TempDir()
	var b bytes.Buffer
	if _, err := g.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	model = filepath.Join(dir, "model.onnx")
	var raw []byte
	for _, v := range []float32{10, 20} {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	state = Input{Name: "n", Type: "f32", Dims: []int{2}, File: filepath.Join(dir, "n")}
	for name, data := range map[string][]byte{model: b.Bytes(), state.File: raw} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return model, state
}

func start(t *testing.T) *Process {
	t.Helper()
	p, err := StartTenure()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(t *testing.T, p *Process, q Request) Reply {
	t.Helper()
	r, err := p.Ask(q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func numbers(t *testing.T, file string) (list []float32) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) > 0; data = data[4:] {
		list = append(list, math.Float32frombits(binary.LittleEndian.Uint32(data)))
	}
	return list
}

// A state that is given up counts the runs; a state that is not stays the same.
func TestStates(t *testing.T) {
	model, state := count(t)
	for _, c := range []struct {
		name    string
		becomes string
		into    bool
		want    float32 // of next after one untimed and three timed runs, and one whose outputs are written
	}{
		{"borrowed", "", false, 11},
		{"borrowed into", "", true, 11},
		{"given", "next", false, 15},
		{"given into", "next", true, 16}, // one run more made the bytes
	} {
		state.Becomes = c.becomes
		p := start(t)
		r := ask(t, p, Request{Do: "load", Model: model, Threads: 1, Inputs: []Input{state}, Outputs: []string{"next", "y"}, Into: c.into})
		if !strings.Contains(r.About, "Tenure") || r.Before <= 0 || r.After < r.Before/2 {
			t.Errorf("%s: load: got %+v, want sizes and a name", c.name, r)
		}
		if r := ask(t, p, Request{Do: "run", Runs: 3, Milliseconds: 1000}); len(r.Nanos) != 3 || r.Nanos[0] <= 0 {
			t.Errorf("%s: run: got times %v, want three", c.name, r.Nanos)
		}
		r = ask(t, p, Request{Do: "outputs", Dir: t.TempDir()})
		if len(r.Files) != 2 {
			t.Fatalf("%s: got files %v, want two", c.name, r.Files)
		}
		next, y := numbers(t, r.Files[0]), numbers(t, r.Files[1])
		if next[0] != c.want || next[1] != c.want+10 || y[0] != -c.want {
			t.Errorf("%s: got next %v and y %v, want next[0] %v", c.name, next, y, c.want)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What an output becomes is donated: the old handle is dead.
func TestStateIsGivenUp(t *testing.T) {
	model, state := count(t)
	state.Becomes = "next"
	s := &server{}
	defer s.close()
	if _, err := s.load(Request{Model: model, Threads: 1, Inputs: []Input{state}, Outputs: []string{"next"}}); err != nil {
		t.Fatal(err)
	}
	old := s.inputs["n"]
	if err := s.once(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := tensor.Float32s(old); !errors.Is(err, tenure.ErrDonated) {
		t.Errorf("got error %v of the old state, want ErrDonated", err)
	}
	if got, err := tensor.Float32s(s.inputs["n"]); err != nil || got[0] != 11 {
		t.Errorf("got %v, %v, want a state that begins with 11", got, err)
	}
}

func TestPeakAndProfile(t *testing.T) {
	model, state := count(t)
	p := start(t)
	defer p.Close()
	ask(t, p, Request{Do: "load", Model: model, Threads: 1, Inputs: []Input{state}, Outputs: []string{"y"}})
	if r := ask(t, p, Request{Do: "peak", Runs: 2}); r.Before <= 0 || r.After < r.Before/2 {
		t.Errorf("peak: got %+v, want two sizes", r)
	}
	r := ask(t, p, Request{Do: "profile", Runs: 3})
	if len(r.Calls) != 2 || r.Calls[0].Op != "add" || r.Calls[1].Op != "neg" || r.Calls[1].Types != "f32[2] -> f32[2]" {
		t.Errorf("profile: got %+v, want add and neg", r.Calls)
	}
	// Nothing but the time limit ends a run of many.
	if r := ask(t, p, Request{Do: "run", Runs: 1 << 40, Milliseconds: 1}); len(r.Nanos) == 0 {
		t.Error("run: got no times, want some")
	}
}

func TestFaultsAreAnswers(t *testing.T) {
	model, state := count(t)
	good := Request{Do: "load", Model: model, Threads: 1, Inputs: []Input{state}, Outputs: []string{"y"}}
	with := func(change func(q *Request)) Request {
		q := good
		q.Inputs = []Input{state}
		change(&q)
		return q
	}
	for _, c := range []struct {
		name, want string
		requests   []Request
	}{
		{"early", `Tenure: run: got "run" before a model, want load`, []Request{{Do: "run"}}},
		{"unknown", `got "jump", want load, run, peak`, []Request{good, {Do: "jump"}}},
		{"twice", "got a second model, want one per process", []Request{good, good}},
		{"no file", "no such file", []Request{with(func(q *Request) { q.Model += "x" })}},
		{"no input", "no such file", []Request{with(func(q *Request) { q.Inputs[0].File += "x" })}},
		{"type", "f31", []Request{with(func(q *Request) { q.Inputs[0].Type = "f31" })}},
		{"dims", "input n: ", []Request{with(func(q *Request) { q.Inputs[0].Dims = []int{3} })}},
		{"missing", "got no value for n", []Request{with(func(q *Request) { q.Inputs = nil })}},
		{"output", "output z: ", []Request{with(func(q *Request) { q.Outputs = []string{"z"} }), {Do: "outputs", Dir: "."}}},
	} {
		p := start(t)
		var err error
		for _, q := range c.requests {
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			_, err = p.Ask(q)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", c.name, err, c.want)
		}
		p.Close()
	}
}

func TestProcessFaults(t *testing.T) {
	if _, err := Start("Nobody", []string{filepath.Join(t.TempDir(), "nobody")}, nil); err == nil || !strings.Contains(err.Error(), "Nobody: ") {
		t.Errorf("got error %v, want one that names Nobody", err)
	}
	for _, c := range []struct{ script, want string }{
		{"exit 3", "got no answer, want one"},
		{"echo hello; cat", `got "hello", want a reply`},
	} {
		p, err := Start("Shell", []string{"sh", "-c", c.script}, nil)
		if err != nil {
			t.Skip("needs a shell: ", err)
		}
		if _, err = p.Ask(Request{Do: "run"}); err == nil {
			_, err = p.Ask(Request{Do: "run"})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("%s: got error %v, want %q", c.script, err, c.want)
		}
		p.Close()
	}
	var out bytes.Buffer
	if err := Serve(strings.NewReader("{]\n"), &out); err == nil || !strings.Contains(err.Error(), `got "{]", want a request`) {
		t.Errorf("got error %v, want one that quotes the line", err)
	}
	if err := Serve(strings.NewReader(""), &out); err != nil {
		t.Errorf("end of requests: got %v, want nil", err)
	}
	line, err := json.Marshal(Request{Do: "exit"})
	if err != nil || string(line) != `{"do":"exit"}` {
		t.Errorf("got %s, %v, want a line with what was asked alone", line, err)
	}
}
