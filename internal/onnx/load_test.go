package onnx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

func floatsRaw(n int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	return b
}

// writeModel writes a model and returns its path.
func writeModel(t *testing.T, m *wire.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, wiretest.EncodeModel(m), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// A weight is used where it lies exactly when it lies aligned, and has the same
// bytes either way.
func TestLoadUsesAlignedWeights(t *testing.T) {
	memorytest.Check(t)
	want := floatsRaw(5000)
	for _, list := range []bool{false, true} {
		for pad := range 8 {
			m := wiretest.ParseText(t, "opset 13\ninput x f32[5000]\ny = Add(x, w)\noutput y f32[5000]")
			m.Producer = strings.Repeat("p", 1+pad)
			w := wire.Tensor{Name: "w", Dims: []int64{5000}, DataType: 1, Raw: want}
			if list { // packed float_data is the same bytes under another name
				w.Raw = nil
				(*wiretest.Writer)(&w.Body).Bytes(wire.FloatData, want)
			}
			m.Graph.Initializers = []wire.Tensor{w}
			path := writeModel(t, m)
			file, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := bytes.Index(file, want)
			for _, read := range []bool{false, true} {
				model, err := Load(path, Options{Read: read})
				if err != nil {
					t.Fatal(err)
				}
				figures := weights.Figures{Copied: 20000}
				if at%4 == 0 {
					figures = weights.Figures{Mapped: 20000}
				}
				if got := model.Weights.Figures(); got != figures {
					t.Errorf("weight at offset %d (list %v, read %v): got %+v, want %+v", at, list, read, got, figures)
				}
				if got, ok := model.Weights.Bytes(model.Program.Weights[0]); !ok || !bytes.Equal(got, want) {
					t.Errorf("weight at offset %d (list %v, read %v): its bytes differ", at, list, read)
				}
				if err := model.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestLoadCountsMemory(t *testing.T) {
	memorytest.Check(t)
	m := wiretest.ParseText(t, "opset 13\ninput x f32[3]\ny = Add(x, w)\nz = Add(y, v)\noutput z f32[3]\ninit unread f32[3] 1 2 3")
	for _, name := range []string{"w", "v"} { // one of the two lies off a multiple of 4, because their heads are of odd length
		m.Graph.Initializers = append(m.Graph.Initializers, wire.Tensor{Name: name, Dims: []int64{3}, DataType: 1, Raw: floatsRaw(3)})
	}
	m.Graph.Initializers[2].Name = "vv"
	m.Graph.Nodes[1].Inputs[1] = "vv"
	path := writeModel(t, m)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	before := memory.Stats()
	model, err := Load(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := memory.Stats()
	figures := model.Weights.Figures()
	if figures.Mapped+figures.Copied != 24 {
		t.Errorf("two weights of 12 bytes that are read: got %+v", figures)
	}
	if got, want := now.Of(memory.Weights).Current-before.Of(memory.Weights).Current, info.Size()+figures.Copied; got != want {
		t.Errorf("bytes of purpose weights: got %d, want %d, the file and the copies", got, want)
	}
	if got := now.Files - before.Files; got != info.Size() {
		t.Errorf("mapped bytes: got %d, want %d", got, info.Size())
	}
	if err := model.Close(); err != nil {
		t.Error(err)
	}
	if err := model.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, ok := model.Weights.Bytes(model.Program.Weights[0]); ok {
		t.Error("a closed model still has bytes")
	}
	if model.Program.String() == "" {
		t.Error("the program is gone with its weights")
	}
}

func TestLoadFaults(t *testing.T) {
	memorytest.Check(t)
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.onnx")
	text := filepath.Join(dir, "text.onnx")
	if err := errors.Join(os.WriteFile(empty, nil, 0o666), os.WriteFile(text, []byte("hello, world"), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path, want string
		kind       error
	}{
		{filepath.Join(dir, "none.onnx"), "none.onnx", os.ErrNotExist},
		{dir, "want a regular file", nil},
		{empty, "empty.onnx: got an empty file, want an ONNX model: download it again", tensor.ErrCorrupt},
		{text, "text.onnx: got a text, want an ONNX model", tensor.ErrCorrupt},
	} {
		m, err := Load(tc.path, Options{})
		if err == nil {
			t.Errorf("%s: got a model", tc.path)
			m.Close()
			continue
		}
		if !strings.HasPrefix(err.Error(), "onnx: ") || !strings.Contains(err.Error(), tc.want) || tc.kind != nil && !errors.Is(err, tc.kind) {
			t.Errorf("%s: got %v, want %q of kind %v", tc.path, err, tc.want, tc.kind)
		}
	}
}

// TestWrongFiles loads files of other kinds in place of models: the error names
// the kind, for every function that loads.
func TestWrongFiles(t *testing.T) {
	memorytest.Check(t)
	whole := wiretest.ModelText(t, "opset 13\ninput x f32[4]\ny = Relu(x)\noutput y f32[4]")
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234567\n"
	for _, tc := range []struct{ name, data, want string }{
		{"pointer", pointer, `got a Git LFS pointer to a file of 1234567 bytes, want an ONNX model: fetch the file itself with "git lfs pull"`},
		{"page", "<!doctype html>\n<title>Sign in</title>", "got an HTML page, want an ONNX model: "},
		{"json", `{"a": 1}`, "got a JSON text, want an ONNX model"},
		{"gzip", "\x1f\x8b\x08\x00\x00", "got a gzip archive, want an ONNX model: unpack it first"},
		{"pickle", "\x80\x02}.", "got a Python pickle, such as a PyTorch checkpoint, want an ONNX model: export"},
		{"utf-16", "\xff\xfeh\x00i\x00", "got text in UTF-16, want an ONNX model"},
		{"tflite", "\x1c\x00\x00\x00TFL3", "got a TensorFlow Lite model, want an ONNX model"},
		{"safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00{}", "got a safetensors file"},
		{"zeros", strings.Repeat("\x00", 4096), "got a file of zeros"},
		{"cut off", string(whole[:len(whole)-20]), "of a graph's "},
	} {
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, []byte(tc.data), 0o666); err != nil {
			t.Fatal(err)
		}
		_, load := Load(path, Options{})
		_, copied := Load(path, Options{Read: true})
		_, files := LoadFS(os.DirFS(filepath.Dir(path)), "m.onnx", Options{})
		_, parse := Parse([]byte(tc.data), "", Options{})
		_, describe := Describe(path)
		for door, err := range map[string]error{"Load": load, "copied": copied, "LoadFS": files, "Parse": parse, "Describe": describe} {
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, tensor.ErrCorrupt) {
				t.Errorf("%s: %s: got %v, want %q of kind ErrCorrupt", tc.name, door, err, tc.want)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "input_0.pb")
	if err := os.WriteFile(path, []byte(pointer), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadTensorFile(path); err == nil || !strings.Contains(err.Error(), "input_0.pb: onnx: got a Git LFS pointer to a file of 1234567 bytes, want a TensorProto") || !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("a tensor: got %v, want a Git LFS pointer of kind ErrCorrupt", err)
	}
}

// A constant in the body of a function is there once, however often the
// function is called.
func TestFunctionsShareConstants(t *testing.T) {
	memorytest.Check(t)
	var text strings.Builder
	text.WriteString("opset 13\nopset f 1\nfunc f::F(x) -> (y)\n  opset 13\n  c = Constant() {value = f32[4] 1 2 3 4}\n  y = Add(x, c)\nend\ninput y0 f32[4]\n")
	const calls = 50
	for i := range calls {
		fmt.Fprintf(&text, "y%d = f::F(y%d)\n", i+1, i)
	}
	fmt.Fprintf(&text, "output y%d f32[4]\n", calls)
	m, err := Parse(wiretest.ModelText(t, text.String()), "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Weights.Figures(); got.Mapped+got.Copied != 16 || len(m.Program.Weights) != calls {
		t.Errorf("%d calls of a function with a constant of 16 bytes: got %d weights, %+v", calls, len(m.Program.Weights), got)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// Names of calls around a value are part of its name as long as they are short.
func TestNamesStayShort(t *testing.T) {
	for _, length := range []int{10, lift.MaxPath, lift.MaxPath + 1, wire.MaxName} {
		call := strings.Repeat("n", length)
		m, err := Parse(wiretest.ModelText(t, fmt.Sprintf(`
			opset 13
			opset f 1
			func f::F(x) -> (y)
			  opset 13
			  inner = Relu(x)
			  y = Neg(inner)
			end
			input x f32[4]
			y = f::F(x) as %q
			output y f32[4]`, call)), "", Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := m.Program.Body.Calls[0].Results[0].Name
		if length <= lift.MaxPath && got != call+"/inner" || len(got) > lift.MaxPath+10 || !strings.HasSuffix(got, "/inner") {
			t.Errorf("value in a call with a name of %d bytes: got %q", length, got)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestModelInformation(t *testing.T) {
	p := wiretest.ParseText(t, `
		ir 3
		opset 13
		opset "com.vendor" 2
		input x f32[batch,2]
		input w f32[2]
		init w f32[2] 1 2
		y = Add(x, w)
		output y f32[n,2]
	`)
	p.Producer, p.ProducerVersion, p.Metadata = "maker", "1.2", []wire.Entry{{Key: "labels", Value: strings.Repeat("x", 2*wire.MaxName)}}
	p.Domain, p.Version, p.Doc, p.Graph.Name, p.Graph.Doc = "com.example", 7, strings.Repeat("d", 2*wire.MaxName), "g", "not UTF-8: \xff"
	m, err := Parse(wiretest.EncodeModel(p), "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Domain != "com.example" || m.Version != 7 || len(m.Doc) != 2*wire.MaxName || m.Graph != "g" || m.GraphDoc != "not UTF-8: \ufffd" {
		t.Errorf("got %q %d, a text of %d bytes, graph %q %q", m.Domain, m.Version, len(m.Doc), m.Graph, m.GraphDoc)
	}
	if m.IRVersion != 3 || m.Producer != "maker" || m.ProducerVersion != "1.2" || len(m.Metadata["labels"]) != 2*wire.MaxName {
		t.Errorf("got IR %d, producer %q %q, metadata %d bytes", m.IRVersion, m.Producer, m.ProducerVersion, len(m.Metadata["labels"]))
	}
	if len(m.Opsets) != 2 || m.Opsets[""] != 13 || m.Opsets["com.vendor"] != 2 {
		t.Errorf("got opsets %v", m.Opsets)
	}
	if len(m.Inputs) != 1 || m.Inputs[0].Name != "x" || m.Inputs[0].Type.String() != "f32[batch,2]" {
		t.Errorf("got inputs %v, want x without its initializer w", m.Inputs)
	}
	if len(m.Outputs) != 1 || m.Outputs[0].Name != "y" || m.Outputs[0].Type.String() != "f32[n,2]" {
		t.Errorf("got outputs %v, want y with the symbol of the file", m.Outputs)
	}
}

// externalModel adds to x weights that lie in the given places.
func externalModel(t *testing.T, dt dtype.DType, n int64, places ...[]wire.Entry) *wire.Model {
	t.Helper()
	m := &wire.Model{Opsets: []wire.Opset{{Version: 13}}, Graph: &wire.Graph{Name: "g"}}
	for i, place := range places {
		name := string(rune('a' + i))
		m.Graph.Initializers = append(m.Graph.Initializers, wire.Tensor{Name: name, Dims: []int64{n}, DataType: dt.ONNX(), External: place})
		m.Graph.Outputs = append(m.Graph.Outputs, wire.Value{Name: name})
	}
	return m
}

func place(pairs ...string) (entries []wire.Entry) {
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, wire.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return entries
}

// link makes a symbolic link and holds it to lead somewhere: not every system
// that makes links follows them.
func link(target, path string) error {
	if err := os.Symlink(target, path); err != nil {
		return err
	}
	_, err := os.Stat(path)
	return err
}

func TestExternalData(t *testing.T) {
	memorytest.Check(t)
	data := floatsRaw(100)
	m := externalModel(t, dtype.F32, 10,
		place("location", "weights/w.bin"),
		place("location", "weights/w.bin", "offset", "40", "length", "40", "checksum", "ignored"),
		place("location", "weights/w.bin", "offset", "42", "length", "40"),
		place("location", "link.bin", "offset", "360"),
		place("location", "weights/../weights/w.bin", "offset", "80", "length", "0"),
		place("location", "./weights/./w.bin", "length", "40", "offset", "8"),
	)
	path := writeModel(t, m)
	dir := filepath.Dir(path)
	file := filepath.Join(dir, "weights", "w.bin")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o777), os.WriteFile(file, data, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := link(filepath.Join("weights", "w.bin"), filepath.Join(dir, "link.bin")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	inMemory, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{"weights/w.bin": {Data: data}, "link.bin": {Data: data}}
	for name, load := range map[string]func() (*Model, error){
		"mapped": func() (*Model, error) { return Load(path, Options{}) },
		"read":   func() (*Model, error) { return Load(path, Options{Read: true}) },
		"bytes":  func() (*Model, error) { return Parse(inMemory, dir, Options{}) },
		"fs":     func() (*Model, error) { return Parse(inMemory, "", Options{FS: fsys}) },
	} {
		m, err := load()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, offset := range []int{0, 40, 42, 360, 80, 8} {
			if got, ok := m.Weights.Bytes(m.Program.Weights[i]); !ok || !bytes.Equal(got, data[offset:offset+40]) {
				t.Errorf("%s: weight at offset %d: its bytes differ", name, offset)
			}
		}
		want := weights.Figures{Mapped: 200, Copied: 40}
		if name == "mapped" || name == "bytes" { // small weights are copied out of a mapped file
			want = weights.Figures{Copied: 240}
		}
		if got := m.Weights.Figures(); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestExternalDataFaults(t *testing.T) {
	memorytest.Check(t)
	outside := filepath.Join(t.TempDir(), "secret.bin")
	if err := os.WriteFile(outside, make([]byte, 100), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		place []wire.Entry
		want  string
		kind  error
	}{
		{"no location", place("offset", "0"), "location is missing", tensor.ErrCorrupt},
		{"missing file", place("location", "none.bin"), `location "none.bin"`, os.ErrNotExist},
		{"absolute", place("location", outside), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"up", place("location", "../secret.bin"), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"down and up", place("location", "sub/../../secret.bin"), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"up and down", place("location", "../sub/secret.bin"), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"up with backslash", place("location", `..\secret.bin`), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"down and up with backslash", place("location", `sub\..\..\secret.bin`), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"rooted with backslash", place("location", `\secret.bin`), "want a path inside the model's folder", tensor.ErrCorrupt},
		{"empty name", place("location", ""), "location is missing", tensor.ErrCorrupt},
		{"link out", place("location", "link.bin"), "want a file inside the model's folder", tensor.ErrCorrupt},
		{"link of folder out", place("location", "linked/secret.bin"), "want a file inside the model's folder", tensor.ErrCorrupt},
		{"folder", place("location", "sub"), "want a regular file", nil},
		{"offset", place("location", "w.bin", "offset", "-4"), `offset: got "-4", want a number of bytes`, tensor.ErrCorrupt},
		{"offset text", place("location", "w.bin", "offset", "4k"), `offset: got "4k", want a number of bytes`, tensor.ErrCorrupt},
		{"length", place("location", "w.bin", "length", "39"), "got a length of 39 bytes, want 40", tensor.ErrCorrupt},
		{"offset beyond", place("location", "w.bin", "offset", "101"), "got 40 bytes at offset 101, want them inside the file's 100", tensor.ErrCorrupt},
		{"end beyond", place("location", "w.bin", "offset", "61"), "got 40 bytes at offset 61, want them inside the file's 100", tensor.ErrCorrupt},
		{"pointer", place("location", "pointer.bin"), `"pointer.bin": got a Git LFS pointer to a file of 40 bytes, want the weights of the model: fetch`, tensor.ErrCorrupt},
		{"page", place("location", "page.bin"), "want them inside the file's 15: got an HTML page, want the weights of the model", tensor.ErrCorrupt},
		{"huge offset", place("location", "w.bin", "offset", "9223372036854775807"), "want them inside the file's 100", tensor.ErrCorrupt},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := writeModel(t, externalModel(t, dtype.F32, 10, tc.place))
			dir := filepath.Dir(path)
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o777), os.WriteFile(filepath.Join(dir, "w.bin"), make([]byte, 100), 0o666),
				os.WriteFile(filepath.Join(dir, "pointer.bin"), []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 40\n"), 0o666),
				os.WriteFile(filepath.Join(dir, "page.bin"), []byte("<!DOCTYPE html>"), 0o666)); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(tc.name, "link") {
				if err := errors.Join(link(outside, filepath.Join(dir, "link.bin")), link(filepath.Dir(outside), filepath.Join(dir, "linked"))); err != nil {
					t.Skipf("no symbolic links here: %v", err)
				}
			}
			m, err := Load(path, Options{})
			if err == nil {
				m.Close()
				t.Fatal("got a model, want an error")
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `tensor "a": external_data: `) || tc.kind != nil && !errors.Is(err, tc.kind) {
				t.Errorf("got %v, want %q of kind %v", err, tc.want, tc.kind)
			}
		})
	}
}

func TestExternalDataOfBytes(t *testing.T) {
	memorytest.Check(t)
	data := wiretest.EncodeModel(externalModel(t, dtype.Bool, 2, place("location", "w.bin")))
	if _, err := Parse(data, "", Options{}); err == nil || !strings.Contains(err.Error(), "the model was not read from a folder") {
		t.Errorf("without a folder: got %v", err)
	}
	m, err := Parse(data, "", Options{FS: fstest.MapFS{"w.bin": {Data: []byte{0, 3}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Weights.Bytes(m.Program.Weights[0]); !ok || !bytes.Equal(got, []byte{0, 1}) {
		t.Errorf("bools 0 and 3: got %v, want 0 and 1", got)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	x := externalModel(t, dtype.F32, 10, place("location", "w.bin")).Graph.Initializers[0]
	var w wiretest.Writer
	wiretest.EncodeTensor(&w, &x)
	if _, _, err := ReadTensor(w); !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), ": external data here") {
		t.Errorf("ReadTensor: got %v, want ErrUnsupported", err)
	}
}
