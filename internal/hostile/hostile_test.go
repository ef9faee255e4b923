package hostile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

var flips = flag.Int("flips", 0, "damaged files per model in TestDamagedFiles, in place of its own number")

const (
	hostileLimit = 256 << 20        // bytes of package memory that a damaged file may take
	runLimit     = 64 << 20         // larger plans are not run
	runTime      = 2 * time.Second  // after which a run is stopped
	hangTime     = 20 * time.Second // after which a case counts as hanging
)

// acmeRegistry has the operator of the model "acme" too.
var acmeRegistry = func() *op.Registry {
	r, err := op.Builtin().With(modeltest.ScaleOperator(nil))
	if err != nil {
		panic(err)
	}
	return r
}()

// outcome is how far a file came.
type outcome struct {
	stage string // "load", "plan", "run": where err comes from; "done" without one
	err   error
	panic string
	heap  int64 // bytes allocated on the Go heap on the way, freed ones included
}

// attempt loads a file, plans it for small shapes and runs it on zeros.
func attempt(data []byte) (o outcome) {
	before := heapAllocated()
	defer func() {
		if p := recover(); p != nil {
			o.panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
		o.heap = heapAllocated() - before
	}()
	o.stage = "load"
	m, err := tenure.LoadBytes(data, tenure.WithOperators(acmeRegistry))
	if err != nil {
		o.err = err
		return o
	}
	defer m.Close()
	s, err := m.NewSession(tenure.WithThreads(2))
	if err != nil {
		o.err = err
		return o
	}
	defer s.Close()
	o.stage = "plan"
	shapes := smallShapes(m)
	p, err := s.Plan(context.Background(), shapes)
	switch {
	case err == nil && p.ArenaBytes+p.IOBytes+p.WeightBytes+p.ScratchBytes > runLimit:
		return o
	case err != nil && !errors.Is(err, tenure.ErrUnsupported): // unsupported: values may decide shapes, a run knows them
		o.err = err
		return o
	}
	o.stage = "run"
	if o.err = runZeros(s, shapes); o.err == nil {
		o.stage = "done"
	}
	return o
}

// fitting are sizes that the models need for some symbols, or for those of one
// input.
var fitting = map[string]int{
	"h": 8, "w": 8, "height": 16, "width": 16, "input/sequence": 576,
	"past_sequence": 3, "unk__214": 1, "sequence": 5, "past_sequence + sequence": 8,
}

// smallShapes sets every open dimension to a size of 1 to 8, the same size for
// the same symbol.
func smallShapes(m *tenure.Model) tenure.Shapes {
	shapes := tenure.Shapes{}
	for i, in := range m.Inputs() {
		if in.Shape == nil {
			shapes[in.Name] = []int{2, 3}
			continue
		}
		dims := make([]int, in.Shape.Rank())
		for k := range dims {
			d := in.Shape.Dim(k)
			if n, ok := d.Size(); ok {
				dims[k] = n
				continue
			}
			symbol := d.String()
			if symbol == "?" {
				symbol = fmt.Sprint(i, k)
			}
			if n := max(fitting[symbol], fitting[in.Name+"/"+symbol]); n > 0 {
				dims[k] = n
				continue
			}
			h := fnv.New32()
			h.Write([]byte(symbol))
			dims[k] = 1 + int(h.Sum32()%8)
		}
		shapes[in.Name] = dims
	}
	return shapes
}

func runZeros(s *tenure.Session, shapes tenure.Shapes) error {
	in := tenure.Inputs{}
	for _, info := range s.Model().Inputs() {
		sh, err := shape.Of(shapes[info.Name]...)
		if err != nil {
			return err
		}
		x, err := tensor.New(info.DType, sh)
		if err != nil {
			return err
		}
		defer x.Release()
		b, err := x.Lock()
		if err != nil {
			return err
		}
		clear(b.Data)
		b.Release()
		in[info.Name] = x
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	out, err := s.Run(ctx, in)
	if err != nil {
		return err
	}
	return out.Release()
}

func heapAllocated() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// try holds one file to the rule: an error or a run, in time, no panic, no
// error that blames us. what says how the file was made.
func try(t testing.TB, what string, data []byte) outcome {
	t.Helper()
	done := make(chan outcome, 1)
	go func() { done <- attempt(data) }()
	select {
	case o := <-done:
		switch {
		case o.panic != "":
			t.Errorf("%s: panic: %s", what, o.panic)
		case o.err != nil && strings.Contains(o.err.Error(), "BUG:"):
			t.Errorf("%s: %s: %v", what, o.stage, o.err)
		case o.err != nil && len(o.err.Error()) > 64<<10:
			t.Errorf("%s: %s: got an error of %d bytes: %.200s", what, o.stage, len(o.err.Error()), o.err)
		}
		return o
	case <-time.After(hangTime):
		stacks := make([]byte, 1<<20)
		t.Fatalf("%s: hangs\n%s", what, stacks[:runtime.Stack(stacks, true)])
		return outcome{}
	}
}

// limited bounds package memory until the test ends.
func limited(t testing.TB, bytes int64) {
	old := memory.SetLimit(bytes)
	t.Cleanup(func() { memory.SetLimit(old) })
}

// hostileModels are the models that are damaged, by path: those of the
// repository, and small ones of the optional data where they are.
func hostileModels(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(modeltest.Root(), "testdata", "*.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("got no models in testdata (%v)", err)
	}
	paths = append(paths, filepath.Join(modeltest.Root(), "examples", "digits", "digits.onnx"))
	if testing.Short() {
		return paths // a race build takes a minute for the others
	}
	for _, name := range []string{"bert_tiny", "silero_vad_op18_ifless", "unet_tiny", "ultraface_rfb_320", "magika_standard_v3_3", "gpt2_tiny", "vit_tiny"} {
		if path := filepath.Join(modeltest.SharedRoot(), "models", name, "model.onnx"); exists(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func modelName(path string) string {
	if base := filepath.Base(path); base != "model.onnx" {
		return strings.TrimSuffix(base, ".onnx")
	}
	return filepath.Base(filepath.Dir(path))
}

// needsData are the models that zeros do not run.
var needsData = map[string]bool{"reshape": true}

// TestDamagedFiles flips bits and bytes of real files where their structure
// is, and takes the result all the way to a run.
func TestDamagedFiles(t *testing.T) {
	memorytest.Check(t)
	limited(t, hostileLimit)
	for _, path := range hostileModels(t) {
		t.Run(modelName(path), func(t *testing.T) {
			original, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			whole := try(t, "the whole file", original)
			if whole.stage != "done" && !needsData[modelName(path)] {
				t.Fatalf("the whole file: %s: %v", whole.stage, whole.err)
			}
			n := *flips
			if n == 0 {
				n = max(20, min(400, 20_000_000/(len(original)+int(whole.heap/10))))
			}
			damage(t, original, whole, n)
		})
	}
}

func damage(t *testing.T, original []byte, whole outcome, n int) {
	parts := dissect(original)
	rnd := rand.New(rand.NewPCG(1, uint64(len(original))))
	stages := map[string]int{}
	// Sizes that a bit makes larger take more, up to the limits.
	heapLimit := 4*whole.heap + 2*int64(len(original)) + hostileLimit
	for range n {
		data, what := parts.damage(original, rnd)
		o := try(t, what, data)
		stages[o.stage]++
		if o.heap > heapLimit {
			t.Errorf("%s: got %d bytes allocated on the heap, want at most %d", what, o.heap, heapLimit)
		}
		if t.Failed() && *flips == 0 {
			return
		}
	}
	t.Logf("of %d files: %v", n, stages)
	if stages["load"] == 0 || whole.stage == "done" && stages["done"] == 0 {
		t.Errorf("got the outcomes %v, want errors and runs: the test damages nothing that matters, or everything", stages)
	}
}

// TestCutFiles truncates files at many lengths.
func TestCutFiles(t *testing.T) {
	memorytest.Check(t)
	limited(t, hostileLimit)
	for _, path := range hostileModels(t) {
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(original)/100)
		for n := 0; n < len(original); n += step {
			what := fmt.Sprintf("%s cut to %d of %d bytes", modelName(path), n, len(original))
			if o := try(t, what, original[:n:n]); o.err == nil {
				t.Errorf("%s: got a run, want an error", what)
			}
		}
	}
}

// FuzzModel takes files that hold anything all the way to a run. Its seeds are
// small, so that few changes miss their structure.
func FuzzModel(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join(modeltest.Root(), "testdata", "*.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for name, build := range odd {
		if strings.HasPrefix(name, "strange") {
			continue
		}
		var g onnxtest.Graph
		build(&g)
		f.Add(g.File())
	}
	for _, data := range wiretest.TextModels(f, filepath.Join(modeltest.Root(), "internal", "onnx", "testdata", "import")) {
		if len(data) <= 1<<10 {
			f.Add(data)
		}
	}
	limited(f, hostileLimit)
	f.Fuzz(func(t *testing.T, data []byte) { try(t, "the file", data) })
}
