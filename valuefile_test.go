package tenure_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// What a run returns is written into files, read again, and passed to a run.
func TestValueFiles(t *testing.T) {
	s := compositeSession(t, `
		opset 18
		opset "ai.onnx.ml" 3
		input s sequence(f32)
		input t sequence(string[n])
		input o optional(i64[n])
		input p optional(sequence(f32[n]))
		input m map(string, f32)
		s2 = Identity(s)
		t2 = Identity(t)
		o2 = Identity(o)
		p2 = Identity(p)
		v = "ai.onnx.ml"::DictVectorizer(m) {string_vocabulary = ["a", "b"]}
		y = "ai.onnx.ml"::ZipMap(v) {classlabels_int64s = [7, 8]}
		m2 = Identity(m)
		output s2 sequence(f32)
		output t2 sequence(string[n])
		output o2 optional(i64[n])
		output p2 optional(sequence(f32[n]))
		output m2 map(string, f32)
		output y sequence(map(i64, f32))`)
	a, b := modeltest.Of(t, []float32{1, 2}, 2), modeltest.Of(t, []float32{3}, 1)
	text, keys := modeltest.Must(tensor.OfStrings([]string{"x", "yes"}, 2)), modeltest.Must(tensor.OfStrings([]string{"b", "a"}, 2))
	defer func() { text.Release(); keys.Release() }()
	for _, in := range []tenure.Inputs{
		{"s": tenure.Sequence{a, b}, "t": tenure.Sequence{text}, "o": modeltest.Of(t, []int64{1, 2}, 2), "p": tenure.Sequence{b},
			"m": tenure.Map{Keys: keys, Values: a}},
		{"s": tenure.Sequence{}, "t": tenure.Sequence{}, "o": tenure.Absent, "p": tenure.Absent, "m": tenure.Map{Keys: keys, Values: a}},
		{"s": tenure.Sequence{b}, "t": tenure.Sequence{}, "o": tenure.Absent, "p": tenure.Sequence{}, "m": tenure.Map{Keys: keys, Values: a}},
	} {
		first := modeltest.Run(t, s, in)
		again, release := throughFiles(t, s.Model(), first)
		second := modeltest.Run(t, s, again)
		release()
		for name, x := range first {
			if diff := modeltest.Differs(second[name], x, modeltest.Tolerance{}); diff != "" {
				t.Errorf("output %q: %s", name, diff)
			}
		}
	}
}

// throughFiles writes outputs x2 into files and reads them as inputs x.
func throughFiles(t *testing.T, m *tenure.Model, out tenure.Outputs) (tenure.Inputs, func()) {
	t.Helper()
	in := tenure.Inputs{}
	var release []tenure.Value
	for _, info := range m.Outputs() {
		c := info.Of
		name := strings.TrimSuffix(c.Name, "2")
		path := filepath.Join(t.TempDir(), "value.pb")
		var file bytes.Buffer
		if err := tenure.WriteValue(&file, c, out); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		v, own, err := tenure.ReadValue(path, c)
		if err != nil || own != c.Name {
			t.Fatalf("%s: got the name %q, %v", c, own, err)
		}
		release = append(release, v)
		if name == "y" {
			y := v.(tenure.Map)
			if got := modeltest.Must(tensor.Values[int64](y.Keys)); !slices.Equal(got, []int64{7, 8}) {
				t.Errorf("got keys %v", got)
			}
			if got := modeltest.Values(t, y.Values); !slices.Equal(got, []float32{2, 1}) {
				t.Errorf("got values %v", got)
			}
			continue
		}
		in[name] = v
	}
	return in, func() {
		for _, v := range release {
			if err := v.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestValueFileFaults(t *testing.T) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "value.pb")
	for _, file := range []string{"\xff\xff", "\x1a\x05\x10\x01", "\x1a\x04\x10\x01\x08\x05", "\x22\x02\x10\x01", "\x1a\x02\x10\x63"} {
		if err := os.WriteFile(path, []byte(file), 0o666); err != nil {
			t.Fatal(err)
		}
		for kind := tenure.KindSequence; kind <= tenure.KindMaps; kind++ {
			if v, _, err := tenure.ReadValue(path, &tenure.Composite{Name: "x", Kind: kind}); err == nil {
				if err := v.Release(); err != nil {
					t.Error(err)
				}
			} else if !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want the name of the file", err)
			}
		}
	}
	if _, _, err := tenure.ReadValue(path, nil); err == nil {
		t.Error("got no error for no composite")
	}
	if _, _, err := tenure.ReadValue("none.pb", &tenure.Composite{Kind: tenure.KindMap}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	if err := tenure.WriteValue(&bytes.Buffer{}, &tenure.Composite{Name: "x", Kind: tenure.KindMap}, nil); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("got %v, want ErrInput for an output that is not there", err)
	}
	if err := tenure.WriteValue(nil, nil, nil); err == nil {
		t.Error("got no error without a writer")
	}
}
