package conformance_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// chains says, for models that are fed their own results, which data sets
// follow one another, and which output an input comes from.
var chains = map[string]struct {
	follows func(set int) bool
	from    func(input string) string
}{
	"silero_vad_op18_ifless": {
		follows: func(set int) bool { return set > 0 },
		from:    func(in string) string { return map[string]string{"state": "stateN"}[in] },
	},
	"gpt2_tiny": {
		follows: func(set int) bool { return set >= 1 && set <= 3 || set == 5 },
		from: func(in string) string {
			if rest, ok := strings.CutPrefix(in, "past_key_values."); ok {
				return "present." + rest
			}
			return ""
		},
	},
}

// TestModels runs every model on all its data sets and compares with the
// reference outputs, and the bytes that calls move with the plan; where sets
// are one chained run, the state is our own.
func TestModels(t *testing.T) {
	dir := modeltest.SharedDir(t, "models")
	models, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(models) == 0 {
		t.Fatalf("got no models in %s (%v)", dir, err)
	}
	var moved movement
	for _, path := range models {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.HasPrefix(name, "light_") {
				t.Skip("skipped with -short: a network of full size, which a race build runs in minutes")
			}
			runModel(t, name, path, &moved)
		})
	}
	t.Logf("%d bytes moved as planned", moved.bytes)
}

func runModel(t *testing.T, name, path string, moved *movement) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, path))
	sets, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "test_data_set_*"))
	if len(sets) == 0 {
		t.Fatal("got no data sets")
	}
	var last tenure.Outputs
	defer func() { last.Release() }()
	for k := range sets {
		out := runSet(t, s, name, filepath.Join(filepath.Dir(path), fmt.Sprintf("test_data_set_%d", k)), k, last, moved)
		if err := last.Release(); err != nil {
			t.Error(err)
		}
		last = out
	}
}

func runSet(t *testing.T, s *tenure.Session, name, dir string, k int, last tenure.Outputs, moved *movement) tenure.Outputs {
	t.Helper()
	in := tenure.Inputs{}
	chain, chained := chains[name]
	for i, info := range s.Model().Inputs() {
		if chained && chain.follows(k) && chain.from(info.Name) != "" {
			in[info.Name] = last[chain.from(info.Name)]
			continue
		}
		x := modeltest.ReadTensor(t, filepath.Join(dir, fmt.Sprintf("input_%d.pb", i)))
		defer x.Release()
		in[info.Name] = x
	}
	out, err := moved.run(s, in)
	if err != nil {
		t.Fatalf("set %d: %v", k, err)
	}
	for i, info := range s.Model().Outputs() {
		want := modeltest.ReadTensor(t, filepath.Join(dir, fmt.Sprintf("output_%d.pb", i)))
		if diff := modeltest.Differs(out[info.Name], want, modeltest.Tolerance{RTol: 1e-3, ATol: 1e-5}); diff != "" {
			t.Errorf("set %d, output %q: %s", k, info.Name, diff)
		}
		want.Release()
	}
	return out
}
