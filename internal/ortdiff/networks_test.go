package ortdiff_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// mixer compares mixed networks.
type mixer struct {
	rewriter
	apart *reference // takes models apart
	tally tally
	drawn *census
}

// TestNetworks compares random networks of all operators with ONNX Runtime: as
// they are drawn, at several sizes from one load, and as its optimiser and
// quantiser write them.
func TestNetworks(t *testing.T) {
	memorytest.Check(t)
	py := python(t, "onnxruntime")
	x := &mixer{tally: tally{}, drawn: newCensus()}
	x.rewriter = rewriter{&reference{python: py, script: "rewrite.py"}, &reference{python: py}, &reference{python: py, args: []string{"optimised"}}}
	x.apart = &reference{python: py, script: "replay.py"}
	for _, r := range []*reference{x.rewrites, x.runs, x.optimises, x.apart} {
		defer r.stop()
	}
	ways := slices.Concat([]string{"", "", "", ""}, optimisations, []string{"", "", "", ""}, optimisations)
	if err := exec.Command(py, "-c", "import onnxruntime.quantization").Run(); err == nil {
		ways = slices.Concat(ways, quantisations)
	}
	if *rewriting != "" {
		ways = []string{strings.TrimPrefix(*rewriting, "none")}
	}
	found := map[string]bool{}
	for i := *firstNetwork; i < *firstNetwork+*networks; i++ {
		m := drawMixed(rand.New(rand.NewPCG(47, uint64(i))), x.runs)
		x.drawn.add(m)
		way := ways[i%len(ways)]
		outcome, fault := x.compare(m, way)
		x.tally[outcome]++
		if kind := way + kindOf(fault); fault != "" && !found[kind] {
			found[kind] = true
			t.Errorf("%s (-network %d -networks 1 -rewriting %q): %.9000s", outcome, i, "none"+way, fault)
		}
	}
	t.Log(x.tally)
	x.drawn.log(t)
	if x.tally["agree"] < *networks/2 {
		t.Errorf("got %d of %d networks that agree, want more", x.tally["agree"], *networks)
	}
}

// compare rewrites a network in one way, "" for none, and compares the results
// at its own sizes and at others. The fault is "" where they agree or cannot be
// compared.
func (x *mixer) compare(m *model, way string) (outcome, fault string) {
	file := []byte(m.encode())
	if way != "" {
		how := &value{name: "how", dt: dtype.String, dims: []int{}, data: encodeStrings([]string{way})}
		answer, err := x.rewrites.run(file, append([]*value{how}, m.values...))
		if err != nil {
			return "ONNX Runtime does not rewrite it: " + firstWords(err), ""
		}
		file = answer["model"].data
		if m, err = m.readBy(file); err != nil {
			return "broken", err.Error()
		}
	}
	if *saved != "" {
		m.save(file)
	}
	want, err := x.runs.run(file, m.values)
	if err != nil {
		return "ONNX Runtime does not run it: " + firstWords(err), ""
	}
	exact := way == "" || slices.Contains(optimisations, way)
	tol := rewrittenTolerance
	if exact {
		tol = m.networkTolerance()
	}
	got, err := m.run(file, tol)
	var bad *broken
	switch {
	case err != nil && way == "all" && strings.Contains(err.Error(), "com.microsoft.nchwc"):
		return "written for one processor", ""
	case errors.As(err, &bad):
		if why := x.reason(m, file, want, nil, exact, 0); why != "" && strings.HasPrefix(bad.text, "eager") {
			return why, ""
		}
		return "broken", bad.text + "\n" + x.explain(m, file) + m.brief()
	case err != nil:
		if why := x.refusals(m, file, err); why != "" {
			return why, ""
		}
		return "refused", "refused: " + err.Error() + "\n" + x.explain(m, file) + m.brief()
	}
	if outcome, fault := x.judge(m, file, want, got, exact); fault != "" || outcome != "agree" {
		return outcome, fault
	}
	if exact {
		return x.others(m, file)
	}
	return "agree", ""
}

var saved = flag.String("saved", "", "file to write the last network to")

// save writes the file of a network, for a person who looks into it.
func (m *model) save(file []byte) {
	if err := os.WriteFile(*saved, file, 0o644); err != nil {
		panic(err)
	}
}

// brief is the model as text, with the first elements of its values.
func (m *model) brief() string {
	const most = 6
	short := *m
	short.values = nil
	for _, v := range m.values {
		cut := *v
		if v.dt != dtype.String && v.dt.Size() > 0 {
			cut.data = v.data[:min(len(v.data), most*v.dt.Size())]
		}
		short.values = append(short.values, &cut)
	}
	return short.String()
}

// readBy returns the network with those inputs that the file has: ONNX
// Runtime's optimiser drops some that nothing reads.
func (m *model) readBy(file []byte) (*model, error) {
	decoded, err := wire.Decode(file)
	if err != nil {
		return nil, err
	}
	return m.with(slices.DeleteFunc(m.inputs(), func(v *value) bool {
		return !slices.ContainsFunc(decoded.Graph.Inputs, func(in wire.Value) bool { return in.Name == v.name })
	})), nil
}

// judge compares one set of outputs.
func (x *mixer) judge(m *model, file []byte, want, got map[string]*value, exact bool) (outcome, fault string) {
	for name, w := range want {
		text := m.far(got[name], w, exact)
		if text == "" {
			continue
		}
		if why := x.reason(m, file, want, got, exact, distance(got[name], w)); why != "" {
			return why, ""
		}
		return "fault", fmt.Sprintf("output %s: %s\n%s%s", name, text, x.explain(m, file), m.brief())
	}
	return "agree", ""
}

// far says where two values of an output of the network are too far apart, ""
// where they are not.
func (m *model) far(got, want *value, exact bool) string {
	if !exact {
		return apartBy(got, want, false).text
	}
	tol := m.networkTolerance()
	if want.dt == dtype.F64 { // which was computed from singles, mostly
		by := epsilon(dtype.F32) / epsilon(dtype.F64)
		tol.rel, tol.abs = by*tol.rel, by*tol.abs
	}
	return tol.apart(got, want, scale(want))
}

// others runs the model at other sizes, from one load.
func (x *mixer) others(m *model, file []byte) (outcome, fault string) {
	if !slices.ContainsFunc(m.values, func(v *value) bool { return v.written != nil }) {
		return "agree", ""
	}
	loaded, err := tenure.LoadBytes(file)
	if err != nil {
		return "broken", "second load: " + err.Error()
	}
	defer loaded.Close()
	s, err := loaded.NewSession(tenure.WithThreads(2))
	if err != nil {
		return "broken", "second session: " + err.Error()
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(seedOf(fmt.Sprint(len(file))), 3))
	for k := range 4 {
		other := m.elsewhere(r)
		want, err := x.runs.run(file, other.values)
		got, ours := other.once(s, k%2 == 0)
		var bad *broken
		switch {
		case errors.As(ours, &bad) || ours != nil && strings.Contains(ours.Error(), "BUG:"):
			return "broken at other sizes", ours.Error() + "\n" + x.explain(other, file) + other.brief()
		case err != nil:
			x.tally["other sizes that ONNX Runtime refuses"]++
			continue
		case ours != nil:
			if why := x.refusals(other, file, ours); why != "" {
				x.tally["other sizes: "+why]++
				continue
			}
			return "refused at other sizes", "refused: " + ours.Error() + "\n" + x.explain(other, file) + other.brief()
		}
		outcome, fault := x.judge(other, file, want, got, true)
		if fault != "" {
			return outcome + " at other sizes", fault
		}
		x.tally["other sizes: "+outcome]++
	}
	return "agree", ""
}

// elsewhere returns the model with inputs of other sizes, as they are declared.
func (m *model) elsewhere(r *rand.Rand) *model {
	became := map[int]int{}
	var list []*value
	for _, v := range m.inputs() {
		if v.written == nil || elements(v.dims) == 0 {
			list = append(list, v)
			continue
		}
		dims := slices.Clone(v.dims)
		for axis, n := range v.written {
			if n >= 0 || n == -1 && r.IntN(2) == 0 {
				continue
			}
			size, ok := became[n]
			if !ok || n == -1 {
				was := dims[axis]
				size = []int{0, 1, 1, 2, 3, was, was, was + 1, was + 3, 2 * was}[r.IntN(10)]
				became[n] = size
			}
			dims[axis] = size
		}
		moved := v.at(r, dims)
		moved.free, moved.written = v.free, v.written
		list = append(list, moved)
	}
	return m.with(list)
}

// networkTolerance is how far results of a network may be apart: some thousand
// roundings of single precision, or some of halves where it has any.
func (m *model) networkTolerance() tolerance {
	tol := tolerance{4096, 1024, 0, ""}
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		if m.has(dt) {
			by := 16 * epsilon(dt) / epsilon(dtype.F32)
			tol = tolerance{by, by, 0, ""}
		}
	}
	return tol
}

// has reports whether constants or inputs have an element type, or a node casts
// to it.
func (m *model) has(dt dtype.DType) bool {
	if slices.ContainsFunc(m.values, func(v *value) bool { return v.dt == dt }) {
		return true
	}
	var casts func(nodes []*node) bool
	casts = func(nodes []*node) bool {
		return slices.ContainsFunc(nodes, func(n *node) bool {
			if n.get("to") == int64(dt.ONNX()) {
				return true
			}
			return slices.ContainsFunc(n.nested(), func(g *graph) bool {
				return casts(g.nodes) || slices.ContainsFunc(g.values, func(v *value) bool { return v.dt == dt })
			})
		})
	}
	return casts(m.graph.nodes) || slices.ContainsFunc(m.functions, func(f *ownFunction) bool { return casts(f.nodes) })
}

// distance is how far two values are apart at most.
func distance(a, b *value) float64 {
	if a == nil || b == nil || a.dt != b.dt || !slices.Equal(a.dims, b.dims) {
		return math.Inf(1)
	}
	if a.dt == dtype.String {
		if bytes.Equal(a.data, b.data) {
			return 0
		}
		return math.Inf(1)
	}
	most := 0.0
	y := decode(b.dt, b.data)
	for i, e := range decode(a.dt, a.data) {
		if math.IsNaN(e.f) != math.IsNaN(y[i].f) {
			return math.Inf(1)
		}
		if e.f != y[i].f {
			most = max(most, math.Abs(e.f-y[i].f))
		}
		most = max(most, math.Abs(e.imag-y[i].imag), math.Abs(float64(e.i)-float64(y[i].i)))
	}
	return most
}
