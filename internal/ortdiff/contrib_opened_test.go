package ortdiff_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestOpenedContrib runs models of ONNX Runtime's operators whose inputs have
// open dimensions: the first one of each that is no list, which counts samples
// mostly.
func TestOpenedContrib(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	counts := tally{}
	for _, s := range onnx.Operators() {
		name, ok := strings.CutPrefix(s.Name, contribDomain+"::")
		if !ok || generatorOf(s) == nil {
			continue
		}
		o := &operator{name: s.Name, from: int(s.From), till: int(s.Till), draw: generatorOf(s), ref: ref, tally: tally{}}
		for i := range min(*models, 20) {
			m := o.model(i, 4)
			file := m.encodeOpen()
			want, err := ref.run(m.encode(), m.values)
			if err != nil {
				counts["ONNX Runtime refuses"]++
				continue
			}
			got, err := m.run(file, tolerances[o.name])
			fault := ""
			if err != nil {
				fault = "refused: " + err.Error()
			} else {
				fault = o.differ(m, got, want)
			}
			switch {
			case fault == "":
				counts["agree"]++
			case o.judge(m, fault) == "":
				counts["departs"]++
			case readsFirst[name] && refusal(fault):
				counts["refused"]++
			default:
				t.Errorf("%s, model %d: %.600s\n%.2000s", s.Name, i, fault, m)
			}
		}
	}
	t.Log(counts)
}

// readsFirst are operators that need that dimension when they are loaded, in
// some calls: a mask that is a list has one number for each sample, or several;
// the first axis of a window counts channels.
var readsFirst = map[string]bool{"Attention": true, "MultiHeadAttention": true, "QAttention": true, "CausalConvWithState": true}

// encodeOpen is the file of the model with an open first dimension in the
// declarations of inputs that are no lists.
func (m *model) encodeOpen() []byte {
	open := *m
	open.values = slices.Clone(m.values)
	for i, v := range open.values {
		if len(v.dims) > 1 && !v.constant {
			w := *v
			w.dims = slices.Clone(v.dims)
			w.dims[0] = -1
			open.values[i] = &w
		}
	}
	return open.encode()
}
