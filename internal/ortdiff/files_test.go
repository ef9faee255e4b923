package ortdiff_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// verdict says which of the two read and run a file.
type verdict int

const (
	alike       verdict = iota // both, with the same results
	refusedBoth                // neither
	onlyTenure
	onlyONNXRuntime
	unlike // both, with other results
)

var verdicts = []string{"both run it, with the same results", "neither runs it", "only Tenure runs it", "only ONNX Runtime runs it", "both run it, with other results"}

// oddFile is a file that some exporter or tool writes, or that the
// specification leaves open.
type oddFile struct {
	name    string
	text    string            // see wiretest.ModelText
	edit    func(*wire.Model) // changes the messages; nil for none
	inputs  []*value          // nil for x, f32[1,3] of 1, -2, 3
	outcome verdict
	words   string // of Tenure's error, or of a note where it runs the file; "" for no notes
	why     string // what docs/onnx-differences.md says of the difference; "" for nothing
}

// single returns an input of f32.
func single(name string, dims []int, list ...float64) *value {
	return &value{name: name, dt: dtype.F32, dims: dims, data: encodeFloats(dtype.F32, list...)}
}

// xInput is the input x of most files.
func xInput() *value { return single("x", []int{1, 3}, 1, -2, 3) }

// TestFiles reads files that are odd with Tenure and with ONNX Runtime: each
// has the outcome that its row says.
func TestFiles(t *testing.T) {
	name := python(t, "onnxruntime")
	memorytest.Check(t)
	ref := &reference{python: name}
	t.Cleanup(ref.stop)
	seen := map[string]bool{}
	for _, f := range slices.Concat(dataFiles, graphFiles, nodeFiles, nameFiles()) {
		if seen[f.name] {
			t.Errorf("two files have the name %s", f.name)
		}
		seen[f.name] = true
		t.Run(f.name, func(t *testing.T) { f.check(t, ref) })
	}
}

func (f *oddFile) check(t *testing.T, ref *reference) {
	proto := wiretest.ParseText(t, f.text)
	if f.edit != nil {
		f.edit(proto)
	}
	file := wiretest.EncodeModel(proto)
	inputs := f.inputs
	if inputs == nil {
		inputs = []*value{xInput()}
	}
	tol := tolerance{rel: 8, abs: 2}
	got, err := (&model{values: inputs}).run(file, tol)
	var fault *broken
	if errors.As(err, &fault) {
		t.Fatal(err)
	}
	want, refErr := ref.run(file, inputs)
	o := alike
	diff := ""
	switch {
	case err != nil && refErr != nil:
		o = refusedBoth
	case refErr != nil:
		o = onlyTenure
	case err != nil:
		o = onlyONNXRuntime
	default:
		for name, w := range want {
			if d := tol.apart(got[name], w, 1); d != "" {
				o, diff = unlike, name+": "+d
			}
		}
	}
	if o != f.outcome {
		t.Errorf("%s, want: %s\nTenure:       %v\nONNX Runtime: %v\n%s", verdicts[o], verdicts[f.outcome], err, refErr, diff)
		return
	}
	f.checkWords(t, file, err)
}

// checkWords looks for the words in the error or the notes.
func (f *oddFile) checkWords(t *testing.T, file []byte, err error) {
	if err != nil {
		if f.words == "" || !strings.Contains(err.Error(), f.words) {
			t.Errorf("got the error %v, want %q in it", err, f.words)
		}
		return
	}
	m, err := onnx.Parse(file, "", onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(m.Notes, "\n")
	if f.words == "" && notes != "" || !strings.Contains(notes, f.words) {
		t.Errorf("got the notes %q, want %q in them", notes, f.words)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// filesAsTable returns one row for each difference of files.
func filesAsTable() string {
	var b strings.Builder
	b.WriteString("| what a file has | difference |\n|---|---|\n")
	for _, f := range slices.Concat(dataFiles, graphFiles, nodeFiles) {
		if f.why != "" {
			b.WriteString("| " + f.name + " | " + f.why + " |\n")
		}
	}
	return b.String()
}
