package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// TestZooThreads runs every model of the zoo that has been made on 1, 2, 3 and
// 8 threads: the results are the same bytes.
func TestZooThreads(t *testing.T) {
	made := 0
	for _, m := range Zoo(ZooFolder()) {
		if m.Missing() {
			continue
		}
		made++
		t.Run(m.Name, func(t *testing.T) { sameOnThreads(t, m) })
	}
	if made == 0 {
		t.Skipf("no model of the zoo in %s: python3 zoo/make.py makes them", ZooFolder())
	}
}

func sameOnThreads(t *testing.T, m Model) {
	model, err := tenure.Load(filepath.Join(m.Folder, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := model.Close(); err != nil {
			t.Error(err)
		}
	}()
	in := zooInputs(t, m.Folder)
	var want map[string][]byte
	for _, threads := range []int{1, 2, 3, 8} {
		got := outputsOn(t, model, in, threads)
		if want == nil {
			want = got
		}
		for name, data := range want {
			if !bytes.Equal(got[name], data) {
				t.Errorf("output %q on %d threads: got other bytes than on 1", name, threads)
			}
		}
	}
}

// outputsOn returns the bytes of the outputs of a run.
func outputsOn(t *testing.T, m *tenure.Model, in tenure.Inputs, threads int) map[string][]byte {
	t.Helper()
	s, err := m.NewSession(tenure.WithThreads(threads))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	out, err := s.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]byte{}
	for name, x := range out {
		b, err := x.Use()
		if err != nil {
			t.Fatal(err)
		}
		list[name] = bytes.Clone(b.Data)
		b.Release()
	}
	if err := out.Release(); err != nil {
		t.Fatal(err)
	}
	return list
}

// zooInputs reads the inputs that zoo/make.py wrote beside a model.
func zooInputs(t *testing.T, folder string) tenure.Inputs {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, Type, File string
		Dims             []int
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	in := tenure.Inputs{}
	for _, x := range list {
		raw, err := os.ReadFile(filepath.Join(folder, x.File))
		if err != nil {
			t.Fatal(err)
		}
		dt, err := dtype.Parse(x.Type)
		if err != nil {
			t.Fatal(err)
		}
		sh, err := shape.Of(x.Dims...)
		if err != nil {
			t.Fatal(err)
		}
		v, err := tensor.FromBytes(dt, sh, raw)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.Release() })
		in[x.Name] = v
	}
	return in
}
