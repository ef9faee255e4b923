package acceptance_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// shareDir returns a folder of the test's own in which processes share weights.
func shareDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weights")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TENURE_SHARE_DIR", dir)
	return filepath.Join(dir, "common")
}

// mapped is the system's account of this process's mappings of weights.
type mapped struct {
	Inodes []string // of the shared memory, in order
	Shared int64    // proportional bytes of it
	File   int64    // proportional bytes of the model's file
}

func mappedNow(path string) (m mapped, err error) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return m, err
	}
	var of *int64
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case !strings.HasSuffix(f[0], ":") && strings.Contains(line, "/memfd:tenure:"):
			m.Inodes = append(m.Inodes, f[4])
			of = &m.Shared
		case !strings.HasSuffix(f[0], ":") && strings.Contains(line, path):
			of = &m.File
		case !strings.HasSuffix(f[0], ":"):
			of = nil
		case f[0] == "Pss:" && of != nil:
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return m, err
			}
			*of += n << 10
		}
	}
	slices.Sort(m.Inodes)
	return m, nil
}

// report is the memory of a process that runs a model, as the process measures
// it.
type report struct {
	Answer  string // a hash of all outputs
	Mapped  mapped
	Memory  tenure.WeightMemory
	Weights int64 // the plan's promise
	Faults  string
}

// total is the bytes of weights that a process has, shared ones by its part.
func (r report) total() int64 { return r.Mapped.Shared + r.Mapped.File + r.Memory.Private }

// runner runs a model on the same inputs again and again.
type runner struct {
	path string
	m    *tenure.Model
	s    *tenure.Session
}

func newRunner(path string, opts ...tenure.Option) (*runner, error) {
	m, err := tenure.Load(path, opts...)
	if err != nil {
		return nil, err
	}
	s, err := m.NewSession(tenure.WithThreads(2))
	return &runner{path, m, s}, err
}

func (r *runner) close() error {
	err := r.s.Close()
	if e := r.m.Close(); err == nil {
		err = e
	}
	return err
}

// ramps returns a ramp for every input; open dimensions are batch.
func (r *runner) ramps(t testing.TB, batch int) tenure.Inputs {
	in := tenure.Inputs{}
	for _, info := range r.m.Inputs() {
		dims, n := []int{}, 1
		for _, d := range info.Shape.Dims() {
			size, ok := d.Size()
			if !ok {
				size = batch
			}
			dims, n = append(dims, size), n*size
		}
		in[info.Name] = modeltest.Of(t, modeltest.Ramp(n), dims...)
	}
	return in
}

func (r *runner) run(in tenure.Inputs) (rep report, err error) {
	out, err := r.s.Run(context.Background(), in)
	if err != nil {
		return rep, err
	}
	defer out.Release()
	hash := sha256.New()
	for _, info := range r.m.Outputs() {
		use, err := out[info.Name].Use()
		if err != nil {
			return rep, err
		}
		hash.Write(use.Data)
		use.Release()
	}
	rep.Answer = fmt.Sprintf("%x", hash.Sum(nil)[:8])
	p, err := r.s.PlanFor(context.Background(), in)
	if err != nil {
		return rep, err
	}
	rep.Weights, rep.Memory = p.WeightBytes, r.m.WeightMemory()
	rep.Mapped, err = mappedNow(r.path)
	return rep, err
}

// TestSharedWeightsChild is another process that runs a model: a request per
// line, a report per request.
func TestSharedWeightsChild(t *testing.T) {
	path := os.Getenv("TENURE_WEIGHTS_CHILD")
	if path == "" {
		t.Skip("only as a child of another test")
	}
	var r *runner
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var rep report
		var err error
		if r == nil {
			r, err = newRunner(path, tenure.WithSharedWeights())
		}
		if err == nil {
			batch, _ := strconv.Atoi(in.Text())
			rep, err = r.run(r.ramps(t, batch))
		}
		if err != nil {
			rep.Faults = err.Error()
		}
		line, _ := json.Marshal(rep)
		fmt.Printf("> %s\n", line)
	}
}

// worker is a process that runs TestSharedWeightsChild.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startWorker(t *testing.T, path string, env ...string) *worker {
	t.Helper()
	w := &worker{cmd: exec.Command(os.Args[0], "-test.run=^TestSharedWeightsChild$")}
	w.cmd.Env = append(append(os.Environ(), "TENURE_WEIGHTS_CHILD="+path), env...)
	w.cmd.Stderr = os.Stderr
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewScanner(out)
	err = w.cmd.Start()
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skipf("an emulated process cannot start another: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	return w
}

func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

func (w *worker) say(t *testing.T, batch int) {
	t.Helper()
	if _, err := fmt.Fprintln(w.in, batch); err != nil {
		t.Fatal(err)
	}
}

func (w *worker) hear(t *testing.T) (r report) {
	t.Helper()
	for w.out.Scan() {
		line, ok := strings.CutPrefix(w.out.Text(), "> ")
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Faults != "" {
			t.Fatal(r.Faults)
		}
		return r
	}
	t.Fatal("the worker ended without an answer")
	return r
}

func (w *worker) run(t *testing.T, batch int) report {
	t.Helper()
	w.say(t, batch)
	return w.hear(t)
}

// runAlone returns the report of a process that shares nothing.
func runAlone(t *testing.T, path string, batch int) report {
	t.Helper()
	r, err := newRunner(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	rep, err := r.run(r.ramps(t, batch))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Memory.Shared != 0 || len(rep.Mapped.Inodes) != 0 {
		t.Errorf("alone: got %+v, want nothing shared", rep)
	}
	return rep
}

func writePacked(t *testing.T, pad string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "packed.onnx")
	if err := os.WriteFile(path, packedModel(pad), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// fourProcesses runs a model in four processes that begin at once.
func fourProcesses(t *testing.T, path string) {
	shareDir(t)
	alone := runAlone(t, path, 1)
	var workers []*worker
	for range 4 {
		workers = append(workers, startWorker(t, path))
	}
	for _, w := range workers {
		w.say(t, 1)
	}
	var first report
	for i, w := range workers {
		r := w.hear(t)
		if i == 0 {
			first = r
		}
		if r.Answer != alone.Answer {
			t.Errorf("process %d: got the answer %s, want %s as without sharing", i, r.Answer, alone.Answer)
		}
		if len(r.Mapped.Inodes) != 1 || r.Mapped.Inodes[0] != first.Mapped.Inodes[0] || r.Memory.Private > alone.Memory.Private/50 {
			t.Errorf("process %d: got %+v, want the memory %v and little of its own", i, r, first.Mapped.Inodes)
		}
		if r.Weights != alone.Weights {
			t.Errorf("process %d: got %d bytes promised, want %d as without sharing", i, r.Weights, alone.Weights)
		}
	}
	var sum int64
	for i, w := range workers { // now that all have it mapped
		r := w.run(t, 1)
		t.Logf("process %d: shared %d, in the file %d, private %d", i, r.Mapped.Shared, r.Mapped.File, r.Memory.Private)
		sum += r.total()
	}
	if one := alone.total(); sum*100 > one*105 {
		t.Errorf("got %d bytes of weights in four processes, want at most 1.05 of the %d of one", sum, one)
	} else {
		t.Logf("four processes: %d bytes of weights, one: %d (%.3f)", sum, one, float64(sum)/float64(one))
	}
	workers[0].kill()
	workers[1].kill()
	fifth := startWorker(t, path).run(t, 1)
	if !slices.Equal(fifth.Mapped.Inodes, first.Mapped.Inodes) || fifth.Answer != alone.Answer {
		t.Errorf("a fifth process, after two were killed: got %+v, want the same memory %v and answer %s", fifth, first.Mapped.Inodes, alone.Answer)
	}
	if r := workers[2].run(t, 1); r.Answer != alone.Answer {
		t.Errorf("a process that goes on: got the answer %s, want %s", r.Answer, alone.Answer)
	}
}

func TestSharedWeights(t *testing.T) { fourProcesses(t, writePacked(t, "c")) }

// TestSharedWeightsOfNetwork is the same on a network of full size.
func TestSharedWeightsOfNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: a network of full size")
	}
	fourProcesses(t, filepath.Join(modeltest.SharedDir(t, "models"), "light_resnet50", "model.onnx"))
}

// TestSharedWeightsInProcess runs every model with weights that this process
// has in common with itself, beside one that shares nothing, and leaves
// nothing.
func TestSharedWeightsInProcess(t *testing.T) {
	dir := shareDir(t)
	for _, pad := range []string{"c", "cc", "ccc", "cccc"} { // weights at every distance from an aligned address
		path := writePacked(t, pad)
		t.Run(pad, func(t *testing.T) {
			compareSharing(t, path, nil, func(t *testing.T, r *runner, i int) tenure.Inputs {
				return r.ramps(t, []int{2, 3, 2}[i])
			}, 3)
		})
		wantNothingShared(t, dir)
	}
	if testing.Short() {
		t.Skip("skipped with -short: whole models, which a race build runs in a minute")
	}
	paths, _ := filepath.Glob(filepath.Join(modeltest.SharedDir(t, "models"), "*", "model.onnx"))
	for _, path := range paths {
		folder := filepath.Dir(path)
		sets, _ := filepath.Glob(filepath.Join(folder, "test_data_set_*"))
		if strings.HasPrefix(filepath.Base(folder), "light_") {
			continue // see TestSharedWeightsOfNetwork
		}
		t.Run(filepath.Base(folder), func(t *testing.T) {
			compareSharing(t, path, nil, func(t *testing.T, r *runner, k int) tenure.Inputs {
				in := tenure.Inputs{}
				for i, info := range r.m.Inputs() {
					x := modeltest.ReadTensor(t, filepath.Join(sets[k], fmt.Sprintf("input_%d.pb", i)))
					t.Cleanup(func() { x.Release() })
					in[info.Name] = x
				}
				return in
			}, len(sets))
		})
		wantNothingShared(t, dir)
	}
}

// TestSharedWeightsThatAreRead shares the file's bytes too, where they are in
// memory.
func TestSharedWeightsThatAreRead(t *testing.T) {
	dir := shareDir(t)
	for _, pad := range []string{"c", "cc"} {
		path := writePacked(t, pad)
		compareSharing(t, path, []tenure.Option{tenure.WithWeights(tenure.Read)}, func(t *testing.T, r *runner, i int) tenure.Inputs {
			return r.ramps(t, 1+i)
		}, 2)
		want, system := runAlone(t, path, 2).Answer, os.DirFS(filepath.Dir(path))
		m, err := tenure.LoadFS(system, filepath.Base(path), tenure.WithSharedWeights())
		if err != nil {
			t.Fatal(err)
		}
		if f, size := m.WeightMemory(), int64(len(packedModel(pad))); f.Shared != size || f.Private > size/10 {
			t.Errorf("from a file system: got %+v, want the file's %d bytes shared", f, size)
		}
		s, err := m.NewSession(tenure.WithThreads(2))
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{path, m, s}
		if got, err := r.run(r.ramps(t, 2)); err != nil || got.Answer != want || got.Memory.Private != 0 {
			t.Errorf("from a file system: got %+v, %v, want the answer %s, and nothing private", got, err, want)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
	wantNothingShared(t, dir)
}

// TestSharedWeightsThatAreCompressed shares them so.
func TestSharedWeightsThatAreCompressed(t *testing.T) {
	dir := shareDir(t)
	path := filepath.Join(t.TempDir(), "compressed.onnx")
	if err := os.WriteFile(path, compressedModel(), 0o666); err != nil {
		t.Fatal(err)
	}
	compareSharing(t, path, []tenure.Option{tenure.WithWeights(tenure.Compressed)}, func(t *testing.T, r *runner, i int) tenure.Inputs {
		x := modeltest.Of(t, modeltest.Ramp((1+2*i)*300), 1+2*i, 300)
		return tenure.Inputs{"x": x}
	}, 2)
	wantNothingShared(t, dir)
}

func compareSharing(t *testing.T, path string, opts []tenure.Option, inputs func(t *testing.T, r *runner, i int) tenure.Inputs, n int) {
	t.Helper()
	memorytest.Check(t)
	for range 2 { // the second finds the bytes of the first, as long as they are there
		alone, err := newRunner(path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer alone.close()
		shared, err := newRunner(path, append(opts, tenure.WithSharedWeights())...)
		if err != nil {
			t.Fatal(err)
		}
		defer shared.close()
		for i := range n {
			in := inputs(t, shared, i)
			want, err := alone.run(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := shared.run(in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Answer != want.Answer || got.Weights != want.Weights {
				t.Errorf("inputs %d: got %+v, want the answer and the promise of %+v", i, got, want)
			}
			if got.Memory.Private > want.Memory.Private/10 || got.Memory.Shared < want.Memory.Private-got.Memory.Private {
				t.Errorf("inputs %d: got %+v, want the %d private bytes of a process that shares nothing in shared memory", i, got.Memory, want.Memory.Private)
			}
		}
	}
}

func wantNothingShared(t *testing.T, dir string) {
	t.Helper()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got %v left, want nothing", left)
	}
	if f := memory.Stats(); f.Of(memory.Shared).Current != 0 {
		t.Errorf("got %d bytes of shared memory left, want none", f.Of(memory.Shared).Current)
	}
}

// TestSharedWeightsUnderKills kills processes at any moment, those that make
// the copy and those that wait for it among them: every answer is correct,
// and at the end nothing prevents the next process from getting the one copy.
func TestSharedWeightsUnderKills(t *testing.T) {
	dir := shareDir(t)
	path := writePacked(t, "c")
	want := runAlone(t, path, 1).Answer
	rnd := rand.New(rand.NewPCG(5, 6))
	const kills = 40
	var running []*worker
	answered := 0
	for range kills {
		for len(running) < 3 {
			w := startWorker(t, path)
			w.say(t, 1)
			running = append(running, w)
		}
		time.Sleep(time.Duration(rnd.IntN(15)) * time.Millisecond)
		i := rnd.IntN(len(running))
		if rnd.IntN(3) == 0 { // this one has the copy when it dies
			if r := running[i].hear(t); r.Answer != want || len(r.Mapped.Inodes) != 1 {
				t.Errorf("got %+v, want the answer %s and one shared memory", r, want)
			}
			answered++
		}
		running[i].kill()
		running = slices.Delete(running, i, i+1)
	}
	last := running[0].hear(t)
	for _, w := range running[1:] {
		if r := w.hear(t); r.Answer != want || !slices.Equal(r.Mapped.Inodes, last.Mapped.Inodes) {
			t.Errorf("got %+v, want the answer %s and the memory %v", r, want, last.Mapped.Inodes)
		}
	}
	for _, w := range running {
		w.kill()
	}
	r, err := newRunner(path, tenure.WithSharedWeights())
	if err != nil {
		t.Fatal(err)
	}
	if rep, err := r.run(r.ramps(t, 1)); err != nil || rep.Answer != want {
		t.Errorf("got %+v, %v, want the answer %s", rep, err, want)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
	wantNothingShared(t, dir)
	t.Logf("%d killed, %d of them after their answer", kills+len(running), answered)
}

// TestSharedWeightsThatAConstantViews reshapes a weight to sizes that are known
// only when a plan is made, so that the plan has a constant in the weight's
// bytes, which sharing moves. The weight lies at every distance from an aligned
// address.
func TestSharedWeightsThatAConstantViews(t *testing.T) {
	memorytest.Check(t)
	shareDir(t)
	want := modeltest.Ramp(1 << 16)
	for pad := range 4 {
		var g onnxtest.Graph
		sizes := strings.Repeat("s", 1+pad)
		g.Input("x", onnxtest.F32, "n", "m")
		g.Floats("w", want...)
		g.Node("Shape", []string{"x"}, []string{sizes})
		g.Node("Reshape", []string{"w", sizes}, []string{"r"})
		g.Node("Add", []string{"x", "r"}, []string{"y"})
		g.Output("y")
		m := modeltest.LoadBytes(t, g.File(), tenure.WithSharedWeights())
		s := modeltest.Session(t, m)
		for _, rows := range []int{256, 128} {
			shapes := tenure.Shapes{"x": {rows, len(want) / rows}}
			modeltest.Must(s.Plan(t.Context(), shapes))
			junk := modeltest.Must(memory.Alloc(4*len(want), memory.Weights)) // where the weight was, if that is free now
			copy(junk.Bytes(), bytes.Repeat([]byte{0x7f}, junk.Len()))
			out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, make([]float32, len(want)), rows, len(want)/rows)})
			if !slices.Equal(modeltest.Values(t, out["y"]), want) {
				t.Errorf("name of %d bytes, %d rows: got other values than the weight's", len(sizes), rows)
			}
			modeltest.Must(0, errors.Join(out.Release(), junk.Release()))
		}
	}
}
