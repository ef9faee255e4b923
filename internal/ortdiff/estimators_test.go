package ortdiff_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// estimatorTolerance is for whole models: sums in another order, and
// exponentials of their own on both sides.
var estimatorTolerance = tolerance{rel: 512, abs: 128, why: "sums in another order, exponentials of their own on both sides"}

// estimator is a fitted and converted estimator, as estimators.py writes it.
type estimator struct {
	name   string
	reason string // why there is no model; "" if there is one
	file   []byte
	inputs []*value
}

// outcome is what the comparison of an estimator found.
type outcome struct{ name, text string }

const (
	estimatorAgrees  = "agrees"
	estimatorNoModel = "no model: "
	estimatorNoORT   = "ONNX Runtime does not run it: "
)

// TestEstimators compares estimators of scikit-learn, LightGBM and XGBoost, as
// skl2onnx and onnxmltools convert them, with ONNX Runtime. Of those that
// convert and that ONNX Runtime runs, 95 of 100 must agree, and
// docs/onnx-estimators.md must say what became of each.
func TestEstimators(t *testing.T) {
	if testing.Short() {
		t.Skip("fitting estimators takes half a minute")
	}
	interpreter := python(t, "skl2onnx")
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	var outcomes []outcome
	versions := ""
	err := readEstimators(interpreter, func(e *estimator) error {
		if e.name == "" {
			versions = e.reason
			return nil
		}
		text, err := e.compare(ref)
		outcomes = append(outcomes, outcome{e.name, text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	agree, count := 0, 0
	for _, o := range outcomes {
		if *verbose {
			t.Logf("%s: %s", o.name, o.text)
		}
		if strings.HasPrefix(o.text, estimatorNoModel) || strings.HasPrefix(o.text, estimatorNoORT) {
			continue
		}
		count++
		if o.text == estimatorAgrees {
			agree++
		}
	}
	t.Logf("%s: %d of %d estimators agree, %d have no model that ONNX Runtime runs", versions, agree, count, len(outcomes)-count)
	if count == 0 || agree*100 < count*95 {
		t.Errorf("got %d of %d estimators that agree, want 95 of 100", agree, count)
	}
	wantEstimatorsDoc(t, versions, outcomes, agree, count)
}

// readEstimators runs estimators.py and calls do with what it writes.
func readEstimators(interpreter string, do func(e *estimator) error) error {
	cmd := exec.Command(interpreter, filepath.Join("testdata", "estimators.py"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := bufio.NewReader(out)
	for {
		e, err := readEstimator(r)
		if err == nil {
			err = do(e)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
			return err
		}
		if err := cmd.Wait(); err != nil {
			text := stderr.String()
			return fmt.Errorf("estimators.py: %w: %s", err, text[max(0, len(text)-2000):])
		}
		return nil
	}
}

// readEstimator reads one estimator; the error is io.EOF after the last one.
func readEstimator(r *bufio.Reader) (*estimator, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	var err error
	read := func(n int) []byte {
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(r, b)
		}
		return b
	}
	u32 := func() int { return int(binary.LittleEndian.Uint32(read(4))) }
	e := &estimator{name: string(read(u32())), reason: string(read(u32())), file: read(u32())}
	for range u32() {
		v := &value{name: string(read(u32()))}
		kind := u32()
		v.dims = make([]int, u32())
		for i := range v.dims {
			v.dims[i] = int(binary.LittleEndian.Uint64(read(8)))
		}
		v.data = read(int(binary.LittleEndian.Uint64(read(8))))
		if err == nil {
			v.dt, err = dtype.FromONNX(int32(kind))
		}
		e.inputs = append(e.inputs, v)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return e, err
}

// compare runs the model with both, and says what came out.
func (e *estimator) compare(ref *reference) (string, error) {
	if e.reason != "" {
		return estimatorNoModel + e.reason, nil
	}
	want, err := ref.run(e.file, e.inputs)
	var no *refused
	if errors.As(err, &no) {
		return estimatorNoORT + firstLine(no.text), nil
	}
	if err != nil {
		return "", err
	}
	m := &model{values: e.inputs}
	got, err := m.run(e.file, estimatorTolerance)
	if err != nil {
		return firstLine(err.Error()), nil
	}
	for name, w := range want {
		if fault := estimatorTolerance.apart(got[name], w, scale(w)); fault != "" {
			return "output " + name + ": " + firstLine(fault), nil
		}
	}
	return estimatorAgrees, nil
}

// firstLine returns the first line of a text, at most 200 bytes of it.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line[:min(len(line), 200)]
}

// wantEstimatorsDoc holds docs/onnx-estimators.md to the outcomes, if it was
// written of the same versions of the packages.
func wantEstimatorsDoc(t *testing.T, versions string, outcomes []outcome, agree, count int) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `<!-- Code generated by internal/ortdiff/estimators_test.go; DO NOT EDIT. -->

# Estimators

%s compares estimators with ONNX Runtime: each is fitted on small data, converted by skl2onnx or
onnxmltools, and run on other data. %d of the %d that convert and that ONNX Runtime runs agree.

Versions: %s.

| estimator | outcome |
|---|---|
`, "`internal/ortdiff`", agree, count, versions)
	for _, o := range outcomes {
		fmt.Fprintf(&b, "| %s | %s |\n", o.name, strings.ReplaceAll(o.text, "|", "\\|"))
	}
	file := filepath.Join("..", "..", "docs", "onnx-estimators.md")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "Versions: "+versions+".") {
		t.Logf("%s is of other versions than %s", file, versions)
		return
	}
	if string(data) != b.String() {
		t.Errorf("%s is not what came out: run go test ./internal/ortdiff -run TestEstimators -update", file)
	}
}
