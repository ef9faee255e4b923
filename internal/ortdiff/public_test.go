package ortdiff_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/conformance"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
)

var public = flag.Int("public", 50, "public cases that run at other sizes, the same in every run; 0: all")

// otherSizes is the number of sizes at which a model runs beside those of its
// first values.
const otherSizes = 3

// TestPublicCases opens the dimensions of the inputs of public test cases,
// loads each model once, runs it at the sizes of its data set and at others, in
// mixed order, and compares with ONNX Runtime. Where ONNX Runtime does not run
// a case, Tenure is compared with a model that meets the one size alone.
func TestPublicCases(t *testing.T) {
	memorytest.Check(t)
	archives, err := conformance.Archives(filepath.Join(modeltest.SharedRoot(), "conformance"))
	if err != nil {
		t.Skip("skipped: ", err)
	}
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	total := tally{}
	for _, name := range archives {
		cases, err := conformance.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range sampled(slices.Sorted(maps.Keys(cases)), *public) {
			t.Run(name, func(t *testing.T) { comparePublic(t, name, cases[name], ref, total) })
		}
	}
	t.Log(total)
}

// sampled returns about n of the names of an archive, always the same; all
// where n is 0.
func sampled(names []string, n int) (kept []string) {
	all := len(conformance.Cases())
	for _, name := range names {
		if n == 0 || int(seedOf(name)%uint64(all)) < n {
			kept = append(kept, name)
		}
	}
	return kept
}

func seedOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// fewer are beginnings of the names of public cases for which fewer other sizes
// may be found, and why.
var fewer = map[string]string{
	"test_causal_conv_with_state_decode_step": "a step has the length 1, and the weights have the sizes of the file: the batch alone differs",
	"test_split_variable_parts":               "the parts have the sum of the file",
	"test_string_split_empty_tensor":          "there is no string of which others could be made",
	"test_PixelShuffle":                       "constants of the file say all sizes",
	"test_operator_repeat_dim_overflow":       "constants of the file say all sizes",
	"test_sequence_model7":                    "the length of a sequence must be known at load",
	"test_sequence_model8":                    "constants of the file say all sizes",
}

func hasFewer(name string) bool {
	for prefix := range fewer {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// comparePublic compares a case at its own sizes and at others.
func comparePublic(t *testing.T, name string, files *conformance.Files, ref *reference, total tally) {
	total["cases"]++
	c, err := openCase(name, files, ref, total)
	switch {
	case errors.Is(err, errNoTensors): // of other lengths, sequences are refused at load
		total["cases with other inputs or outputs than tensors"]++
		return
	case errors.Is(err, tenure.ErrUnsupported):
		total["cases that are not supported"]++
		if m, err := tenure.LoadBytes(files.Model); err == nil {
			m.Close()
			if !hasFewer(name) {
				t.Error("got a model that is supported with the sizes of the file alone, want some dimension open")
			}
		}
		return
	case err != nil:
		t.Fatal(err)
	}
	defer c.own.Close()
	draws := false
	c.own.Program().Walk(func(_ *ir.Block, call *ir.Call) { draws = draws || call.Op.Impure })
	if draws {
		total["cases that draw random numbers"]++
		return
	}
	if resizes := slices.ContainsFunc(c.m.inputs(), func(v *value) bool { return len(v.dims) > 0 || isList(v) }); !resizes {
		total["cases without a size"]++
		return
	}
	c.compare(t, c.drawn)
}

// openCase opens the model of a case and loads it, with as many open dimensions
// as Tenure takes.
func openCase(name string, files *conformance.Files, ref *reference, total tally) (*opened, error) {
	var first error
	for which := range openings {
		file, decoded, err := openFile(files.Model, which)
		if err != nil {
			return nil, err
		}
		own, err := tenure.LoadBytes(file)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		if first != nil {
			total["cases of which only some dimensions can be open"]++
		}
		var values []*value
		for i := range decoded.Graph.Inputs {
			in := &decoded.Graph.Inputs[i]
			if isInitialised(decoded.Graph, in.Name) {
				continue
			}
			v, err := valueOfFile(in, files.Sets["test_data_set_0"][fmt.Sprintf("input_%d.pb", len(values))])
			if err != nil {
				return nil, errors.Join(err, own.Close())
			}
			values = append(values, v)
		}
		m, err := modelOf(decoded, values)
		if err != nil {
			return nil, errors.Join(err, own.Close())
		}
		return &opened{name: name, file: file, m: m, tol: toleranceOf(&m.graph), ref: ref, tally: total, own: own}, nil
	}
	return nil, first
}

// drawn draws values of other sizes behind those of the case itself; -from
// draws others.
func (c *opened) drawn(yield func([]*value) bool) {
	const tries = 400
	base := c.m.inputs()
	r := rand.New(rand.NewPCG(seedOf(c.name), uint64(*from)))
	for try, values := 0, base; try < tries && yield(values); try++ {
		values = resized(r, base, try > tries/3)
	}
}

// compare runs one load of the model with values of these sizes, until enough
// of them are what both run, and compares with the reference; then with all of
// those again, in another order and with the inputs given up.
func (c *opened) compare(t *testing.T, sizes iter.Seq[[]*value]) {
	s, err := c.own.NewSession(tenure.WithThreads(2))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	reference := c.reference(t)
	var kept []result
	seen := map[string]bool{}
	for values := range sizes {
		if len(kept) > otherSizes {
			break
		}
		if values == nil || seen[sizesOf(values)] {
			continue
		}
		want, theirs := reference(values)
		if large(want) {
			continue
		}
		m := c.m.with(values)
		got, ours := m.once(s, false)
		var bad *broken
		fault := ""
		switch {
		case errors.As(ours, &bad):
			fault = bad.text
		case theirs != nil && ours != nil:
			c.tally["refused by both"]++
		case theirs != nil:
			c.tally["refused by ONNX Runtime alone"]++
			if *verbose {
				t.Logf("%s: ONNX Runtime: %.300s", sizesOf(values), theirs)
			}
		case ours != nil:
			fault = "refused: " + ours.Error()
		default:
			seen[sizesOf(values)] = true
			kept = append(kept, result{m, got})
			fault = m.differ(got, want, m.tolerance(c.tol))
		}
		c.report(t, m, fault)
	}
	if n := max(len(kept)-1, 0); n < otherSizes {
		c.tally[fmt.Sprintf("cases with %d other sizes", n)]++
		if !hasFewer(c.name) {
			t.Errorf("got %d other sizes that both run, want %d, or a reason in the table of those with fewer", n, otherSizes)
		}
	}
	c.again(t, s, kept)
	f := c.own.Structures()
	c.tally["sizes"] += len(kept)
	c.tally["compiled"] += f.Compiled
	c.tally["instances"] += f.Instances
	for reason, n := range f.Pinned {
		c.tally["pinned: "+reason] += n
	}
}

// large reports whether outputs have too many elements to compare: a list of
// repeats makes any number.
func large(outputs map[string]*value) bool {
	for _, v := range outputs {
		if elements(v.dims) > 1<<20 {
			return true
		}
	}
	return false
}

// result is a model with the values of its inputs, and what Tenure made of
// them.
type result struct {
	m   *model
	got map[string]*value
}

// again runs all that has been run once more, in another order: with the inputs
// given up, and as before. The results are the same bits.
func (c *opened) again(t *testing.T, s *tenure.Session, kept []result) {
	for round, give := range []bool{true, false} {
		for k := range kept {
			x := kept[(k+1+round)%len(kept)]
			got, err := x.m.once(s, give)
			if err != nil {
				c.report(t, x.m, "again: "+err.Error())
				continue
			}
			c.report(t, x.m, different(x.got, got))
		}
	}
}

// report reports a fault, unless the difference stands.
func (c *opened) report(t *testing.T, m *model, fault string) {
	if fault == "" {
		return
	}
	if reason := c.excuse(m, fault); reason != "" {
		c.tally["departs: "+reason]++
		return
	}
	c.tally["faults"]++
	t.Errorf("%s: %.1500s", sizesOf(m.values), fault)
}

// reference returns what runs the model with ONNX Runtime; where that refuses
// the model at its own sizes, with a model of Tenure that meets one set of
// sizes alone.
func (c *opened) reference(t *testing.T) func([]*value) (map[string]*value, error) {
	run := func(values []*value) (map[string]*value, error) { return c.ref.run(c.file, values) }
	_, err := run(c.m.inputs())
	var no *refused
	if !errors.As(err, &no) {
		return run
	}
	c.tally["cases that ONNX Runtime refuses"]++
	if *verbose {
		t.Logf("ONNX Runtime: %.300s", err)
	}
	return func(values []*value) (map[string]*value, error) { return c.m.with(values).alone(c.file) }
}

// tolerance returns how far results of the model may be apart at its sizes:
// sums of many elements that ONNX Runtime adds up one after the other are less
// exact.
func (m *model) tolerance(tol tolerance) tolerance {
	most := 0
	for _, v := range m.values {
		most = max(most, elements(v.dims))
	}
	times := 1 + float64(most)/2048
	tol.rel, tol.abs = times*tol.rel, times*tol.abs
	return tol
}

// lax are inputs that ONNX Runtime runs and Tenure refuses. Random models do
// not have them; sizes that are drawn do.
var lax = []departure{
	refuses("want each once", "an axis that is named twice is an error; ONNX Runtime takes it once", reductions...),
	refuses("dimensions, want 0 to 64", "more axes than dimensions are an error; ONNX Runtime takes each once", reductions...),
	refuses("for the dimension of target and x, want one", "a loss needs a target for each sample; ONNX Runtime reads as many samples as there are targets",
		"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"),
	refuses("(non_max_suppression): non_max_suppression: operand", "a limit is one number; ONNX Runtime takes the first of several", "NonMaxSuppression"),
	refuses("numbers of a head to turn, want an even number", "numbers turn in pairs; ONNX Runtime leaves the last one", "RotaryEmbedding"),
	refuses("want 1 number in the last axis", "one side of a spectrum is that of real numbers; ONNX Runtime drops imaginary parts", "DFT", "STFT"),
	refuses("conditions", "there are at most as many conditions as elements; ONNX Runtime does not look at more", "Compress"),
}

// refuses is a departure of operators whose error has these words.
func refuses(words, why string, ops ...string) departure {
	return departure{ops, why, func(_ *model, fault string) bool { return refusal(fault) && strings.Contains(fault, words) }}
}

// excuse returns the reason of a difference that stands, "" for a fault.
func (c *opened) excuse(m *model, fault string) string {
	for i := range lax {
		if lax[i].when(m, fault) {
			return lax[i].why
		}
	}
	if len(m.graph.nodes) != 1 {
		return ""
	}
	name := m.graph.operators()[0]
	for i := range departures {
		if d := &departures[i]; (d.ops == nil || slices.Contains(d.ops, name)) && d.when(m, fault) {
			return d.why
		}
	}
	return ""
}
