package conformance_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/conformance"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// looser lists the cases whose tolerance is not the usual one, and why.
var looser = map[string]struct {
	modeltest.Tolerance
	reason string
}{
	"test_dft_inverse":               {modeltest.Tolerance{RTol: 1e-3, ATol: 1e-6}, "what should be 0 is a rounding error of single precision in the reference"},
	"test_bernoulli":                 {drawn, drawnReason},
	"test_bernoulli_double":          {drawn, drawnReason},
	"test_bernoulli_double_expanded": {drawn, drawnReason},
	"test_bernoulli_expanded":        {drawn, drawnReason},
	"test_bernoulli_seed":            {drawn, drawnReason},
	"test_bernoulli_seed_expanded":   {drawn, drawnReason},

	"test_training_dropout":              {dropped, drawnReason},
	"test_training_dropout_default":      {dropped, drawnReason},
	"test_training_dropout_default_mask": {dropped, drawnReason},
	"test_training_dropout_mask":         {dropped, drawnReason},
}

// drawn accepts zeros for ones: types and sizes are compared. The distribution
// is compared by TestRandomOperators of package acceptance.
var drawn = modeltest.Tolerance{ATol: 1}

// dropped accepts zeros for elements that are kept and divided by a share of
// one quarter or more. What is dropped is compared by TestDropout of package
// acceptance.
var dropped = modeltest.Tolerance{ATol: 16}

const drawnReason = "the numbers are drawn, the reference has drawn others"

// resultsFile lists every case with the operators of its model and whether it
// passes: what passed once must go on passing. docs/onnx-support.md counts it.
const resultsFile = "testdata/conformance.txt"

const resultsHeader = "# archive, case, outcome, operators: rewritten by go generate ./internal/conformance where the archives are\n"

// caseOutcome is one line of resultsFile.
type caseOutcome struct {
	archive, name string
	passed        bool
	operators     []string
}

func (o caseOutcome) String() string {
	word := "unsupported"
	if o.passed {
		word = "pass"
	}
	return strings.Join([]string{o.archive, o.name, word, strings.Join(o.operators, " ")}, "\t")
}

// readOutcomes reads resultsFile.
func readOutcomes(t *testing.T) []caseOutcome {
	t.Helper()
	data, err := os.ReadFile(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	var list []caseOutcome
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || f[2] != "pass" && f[2] != "unsupported" {
			t.Fatalf("%s: got line %q, want four fields, the third of them pass or unsupported", resultsFile, line)
		}
		list = append(list, caseOutcome{f[0], f[1], f[2] == "pass", strings.Fields(f[3])})
	}
	return list
}

// TestConformance runs the public ONNX backend tests. A case that needs an
// unsupported operator or type must be in the table of excluded ones; any other
// caseOutcome than a pass is a fault.
func TestConformance(t *testing.T) {
	archives, err := conformance.Archives(filepath.Join(modeltest.SharedRoot(), "conformance"))
	if err != nil {
		t.Skip("skipped: ", err)
	}
	var outcomes []caseOutcome
	var moved movement
	for _, file := range archives {
		archive := strings.TrimSuffix(filepath.Base(file), ".zip")
		t.Run(archive, func(t *testing.T) {
			memorytest.Check(t)
			cases, err := conformance.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			outcomes = append(outcomes, runArchive(t, archive, cases, &moved)...)
		})
	}
	if !t.Failed() && moved.bytes == 0 {
		t.Error("got no case that moves bytes, want some")
	}
	matched := map[string]bool{}
	for _, o := range outcomes {
		if row := excludedBy(o.name); row != nil && !o.passed {
			matched[row.names] = true
		}
	}
	for _, row := range excluded {
		if !matched[row.names] {
			t.Errorf("excluded cases: %q names no case that is unsupported: remove the row", row.names)
		}
	}
	checkOutcomes(t, outcomes)
}

// runArchive runs the cases of one archive, in the order of their names.
func runArchive(t *testing.T, archive string, cases map[string]*conformance.Files, moved *movement) []caseOutcome {
	var outcomes []caseOutcome
	counts := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		o := caseOutcome{archive: archive, name: name, operators: operatorsOf(t, c.Model)}
		err := runCase(name, c, moved)
		row := excludedBy(name)
		switch {
		case err == nil:
			o.passed = true
			counts["passed"]++
		case row != nil && errors.Is(err, tenure.ErrUnsupported):
			counts[row.reason]++
		default:
			t.Errorf("%s: %.600s", name, err)
		}
		outcomes = append(outcomes, o)
	}
	t.Logf("%d of %d passed", counts["passed"], len(cases))
	delete(counts, "passed")
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%d excluded: %s", counts[reason], reason)
	}
	return outcomes
}

// checkOutcomes holds the outcomes against those that are committed.
func checkOutcomes(t *testing.T, outcomes []caseOutcome) {
	if *update && !t.Failed() {
		var b strings.Builder
		b.WriteString(resultsHeader)
		for _, o := range outcomes {
			fmt.Fprintln(&b, o)
		}
		if err := os.WriteFile(resultsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	now := map[string]string{}
	for _, o := range outcomes {
		now[o.archive+" "+o.name] = o.String()
	}
	for _, o := range readOutcomes(t) {
		key := o.archive + " " + o.name
		if got := now[key]; got != o.String() {
			t.Errorf("got %q, want %q as %s has it: run go generate ./internal/conformance if that is meant", got, o, resultsFile)
		}
		delete(now, key)
	}
	for _, line := range now {
		t.Errorf("got %q, which %s does not have: run go generate ./internal/conformance", line, resultsFile)
	}
}

// operatorsOf returns the operators of a model's nodes, nested ones too.
func operatorsOf(t *testing.T, model []byte) []string {
	t.Helper()
	d, err := onnx.DescribeBytes(model)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(d.Operators))
}

func runCase(name string, c *conformance.Files, moved *movement) error {
	m, err := tenure.LoadBytes(c.Model)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	tol := modeltest.Tolerance{RTol: 1e-3, ATol: 1e-7}
	if row, ok := looser[name]; ok {
		tol = row.Tolerance
	}
	for _, set := range slices.Sorted(maps.Keys(c.Sets)) {
		if err := runBackendSet(s, c.Sets[set], tol, moved); err != nil {
			return fmt.Errorf("%s: %w", set, err)
		}
	}
	return nil
}

func runBackendSet(s *tenure.Session, files map[string][]byte, tol modeltest.Tolerance, moved *movement) error {
	in := tenure.Inputs{}
	for i, info := range declared(s.Model().Inputs()) {
		name := fmt.Sprintf("input_%d.pb", i)
		if info.Of != nil {
			v, err := readValue(files, name, info.Of)
			if err != nil {
				return err
			}
			defer v.Release()
			in[info.Of.Name] = v
			continue
		}
		x, err := readProto(files, name)
		if err != nil {
			return err
		}
		defer x.Release()
		in[info.Name] = x
	}
	out, err := moved.run(s, in)
	if err != nil {
		return err
	}
	defer out.Release()
	for i, info := range declared(s.Model().Outputs()) {
		if info.Of != nil {
			if err := compareValue(out, info.Of, files, fmt.Sprintf("output_%d.pb", i), tol); err != nil {
				return fmt.Errorf("output %q: %w", info.Of.Name, err)
			}
			continue
		}
		want, err := readProto(files, fmt.Sprintf("output_%d.pb", i))
		if err != nil {
			return err
		}
		diff := ""
		if info.Text {
			diff = textDiffers(out[info.Name], want)
		} else {
			diff = modeltest.Differs(out[info.Name], want, tol)
		}
		want.Release()
		if diff != "" {
			return fmt.Errorf("output %q: %s", info.Name, diff)
		}
	}
	return nil
}

// textDiffers returns the difference of two tensors of strings, whose widths
// may differ, "" if they are equal.
func textDiffers(got, want *tensor.Tensor) string {
	a, err := tensor.Strings(got)
	if err != nil {
		return err.Error()
	}
	b, err := tensor.Strings(want)
	if err != nil {
		return err.Error()
	}
	dims := func(x *tensor.Tensor) []int { return x.Shape().Sizes()[:x.Shape().Rank()-1] }
	if !slices.Equal(dims(got), dims(want)) || !slices.Equal(a, b) {
		return fmt.Sprintf("got %q %v, want %q %v", a, dims(got), b, dims(want))
	}
	return ""
}

func readProto(files map[string][]byte, name string) (*tensor.Tensor, error) {
	data, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("the case has no %s", name)
	}
	x, _, err := onnx.ReadTensor(data)
	return x, err
}
