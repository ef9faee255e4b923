package tenure_test

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/onnx"
	"github.com/tenure-go/tenure/tensor"
)

// backendCase is one public ONNX backend test: a model and its data sets.
type backendCase struct {
	model []byte
	sets  map[string]map[string][]byte // by folder, by file name
}

func readCases(t *testing.T, file string) map[string]*backendCase {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	cases := map[string]*backendCase{}
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		dir, base := path.Split(f.Name)
		name, set, _ := strings.Cut(strings.TrimSuffix(dir, "/"), "/")
		c := cases[name]
		if c == nil {
			c = &backendCase{sets: map[string]map[string][]byte{}}
			cases[name] = c
		}
		if base == "model.onnx" {
			c.model = data
			continue
		}
		if c.sets[set] == nil {
			c.sets[set] = map[string][]byte{}
		}
		c.sets[set][base] = data
	}
	return cases
}

// leastPassed is how many cases of each archive pass now: fewer is a step
// back.
var leastPassed = map[string]int{
	"onnx-node":              941,
	"onnx-simple":            3,
	"onnx-pytorch-operator":  14,
	"onnx-pytorch-converted": 49,
}

// looser lists the cases whose tolerance is not the usual one, and why.
var looser = map[string]tolerance{}

// TestConformance runs the public ONNX backend tests. A case that needs what
// is not supported counts as such; any other outcome than a pass is a fault.
func TestConformance(t *testing.T) {
	dir := sharedDir(t, "conformance")
	archives, err := filepath.Glob(filepath.Join(dir, "*.zip"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("got no archives in %s (%v)", dir, err)
	}
	for _, file := range archives {
		name := strings.TrimSuffix(filepath.Base(file), ".zip")
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			passed, lacking := 0, 0
			for name, c := range readCases(t, file) {
				err := c.run(name)
				switch {
				case err == nil:
					passed++
				case errors.Is(err, tenure.ErrUnsupported):
					lacking++
					t.Logf("not supported: %s: %.200s", name, err)
				default:
					t.Errorf("%s: %.600s", name, err)
				}
			}
			t.Logf("%d passed, %d not supported", passed, lacking)
			if passed < leastPassed[name] {
				t.Errorf("got %d cases passed, want at least %d", passed, leastPassed[name])
			}
		})
	}
}

func (c *backendCase) run(name string) error {
	m, err := tenure.LoadBytes(c.model)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	var sets []string
	for set := range c.sets {
		sets = append(sets, set)
	}
	sort.Strings(sets)
	tol, ok := looser[name]
	if !ok {
		tol = tolerance{rtol: 1e-3, atol: 1e-7}
	}
	for _, set := range sets {
		if err := runBackendSet(s, c.sets[set], tol); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return nil
}

func runBackendSet(s *tenure.Session, files map[string][]byte, tol tolerance) error {
	in := tenure.Inputs{}
	for i, info := range s.Model().Inputs() {
		x, err := readProto(files, fmt.Sprintf("input_%d.pb", i))
		if err != nil {
			return err
		}
		defer x.Release()
		in[info.Name] = x
	}
	out, err := s.Run(context.Background(), in)
	if err != nil {
		return err
	}
	defer out.Release()
	for i, info := range s.Model().Outputs() {
		want, err := readProto(files, fmt.Sprintf("output_%d.pb", i))
		if err != nil {
			return err
		}
		diff := differs(out[info.Name], want, tol)
		want.Release()
		if diff != "" {
			return fmt.Errorf("output %q: %s", info.Name, diff)
		}
	}
	return nil
}

func readProto(files map[string][]byte, name string) (*tensor.Tensor, error) {
	data, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("the case has no %s", name)
	}
	x, _, err := onnx.ReadTensor(data)
	return x, err
}
