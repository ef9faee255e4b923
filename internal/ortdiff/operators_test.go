package ortdiff_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/memory/memorytest"
)

var (
	models    = flag.Int("models", 5, "models per operator")
	from      = flag.Int("from", 0, "number of the first model")
	evaluator = flag.Bool("evaluator", false, "compare with ONNX's reference implementation, not with ONNX Runtime")
	faults    = flag.Int("faults", 3, "models that are printed per operator")
)

// TestOperators compares models of each operator.
func TestOperators(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	var umpire *reference
	if *evaluator {
		ref, umpire = &reference{python: python(t, "onnx"), script: "evaluator.py"}, ref
		defer umpire.stop()
	}
	defer ref.stop()
	var rewrites *reference
	if *rewriting != "" {
		rewrites = &reference{python: ref.python, script: "rewrite.py"}
		defer rewrites.stop()
	}
	total, schemas := tally{}, schemas(t)
	for _, s := range onnx.Operators() {
		if random[s.Name] {
			continue
		}
		draw := generatorOf(s)
		if draw == nil {
			t.Errorf("operator %s has neither a generator nor cases", s.Name)
			continue
		}
		t.Run(strings.ReplaceAll(s.Name, "::", "."), func(t *testing.T) {
			o := &operator{name: s.Name, from: int(s.From), till: int(s.Till), draw: draw, ref: ref, umpire: umpire, rewrites: rewrites, tally: tally{}}
			o.compare(t)
			if _, known := schemas[o.name]; o.tally["agree"] == 0 && !*evaluator && *models >= 30 && known && !never[o.name] {
				t.Errorf("got no model of %s that both run, want some", o.name)
			}
			for k, n := range o.tally {
				total[k] += n
			}
		})
	}
	t.Log(total)
}

// tally counts models by what came out.
type tally map[string]int

func (t tally) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%s: %d", k, t[k]))
	}
	return strings.Join(parts, ", ")
}

// operator is one operator under comparison.
type operator struct {
	name       string
	from, till int
	draw       func(*drawer)
	ref        *reference
	rewrites   *reference // writes the models as ONNX Runtime saves them, nil for none
	umpire     *reference // asked where Tenure and the reference differ, nil for none
	tally      tally
}

// compare draws the models of the operator.
func (o *operator) compare(t *testing.T) {
	found := map[string]bool{}
	for i := *from; i < *from+*models; i++ {
		m := o.model(i, 4)
		fault, err := o.try(m)
		if err != nil {
			t.Fatal(err)
		}
		kind := kindOf(fault)
		if fault == "" || found[kind] {
			continue
		}
		found[kind] = true
		if len(found) <= *faults {
			m, fault = o.shrink(m, fault)
			t.Errorf("%s (-from %d): %s\n%s", o.name, i, fault, m)
		}
	}
	if len(found) > *faults {
		t.Errorf("%d more kinds of faults", len(found)-*faults)
	}
	t.Log(o.name, o.tally)
}

// kindOf is what faults of one kind have in common: their words.
func kindOf(fault string) string {
	line, _, _ := strings.Cut(fault, "\n")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '-' {
			return -1
		}
		return r
	}, line[:min(len(line), 60)])
}

// model draws model i of the operator.
func (o *operator) model(i, size int) *model {
	h := fnv.New64()
	h.Write([]byte(o.name))
	d := newDrawer(rand.New(rand.NewPCG(h.Sum64(), uint64(i))), size)
	d.m.opset = d.between(o.from, o.till)
	if strings.Contains(o.name, "::") {
		d.m.opset = d.between(11, 22)
	}
	d.mild, d.calm = !slices.Contains(wild, o.name), slices.Contains(calm, o.name)
	o.draw(d)
	if domain, _, ok := strings.Cut(o.name, "::"); ok {
		for _, n := range d.m.graph.nodes {
			if n.op == o.name[len(domain)+2:] {
				n.domain = domain
			}
		}
	}
	return d.m
}

// try runs a model with both. A fault is "" where they agree, or cannot be
// compared.
func (o *operator) try(m *model) (fault string, err error) { return o.tryFile(m, m.encode()) }

// tryFile is try for a model that is in a file.
func (o *operator) tryFile(m *model, file []byte) (fault string, err error) {
	want, err := o.ref.run(file, m.values)
	var no *refused
	if err != nil && !errors.As(err, &no) {
		return "", err
	}
	if o.rewrites != nil && err == nil {
		how := &value{name: "how", dt: dtype.String, dims: []int{}, data: encodeStrings([]string{*rewriting})}
		if answer, err := o.rewrites.run(file, append([]*value{how}, m.values...)); err == nil {
			file = answer["model"].data
		} else {
			o.tally["ONNX Runtime does not rewrite it"]++
			return "", nil
		}
	}
	got, ours := m.run(file, tolerances[o.name])
	var bad *broken
	switch {
	case errors.As(ours, &bad):
		o.tally["broken"]++
		return bad.text, nil
	case ours != nil && strings.Contains(ours.Error(), "BUG:"):
		o.tally["broken"]++
		return ours.Error(), nil
	case err != nil && ours != nil:
		o.tally["both refuse"]++
		if *verbose {
			fmt.Printf("BOTH %s\n  ort: %.300s\n  ours: %.300s\n%s\n", o.name, err, ours, m)
		}
		return "", nil
	case err != nil:
		o.tally["ORT cannot"]++
		if *verbose {
			fmt.Printf("ORT CANNOT %s: %.300s\n%s\n", o.name, err, m)
		}
		return "", nil
	case ours != nil:
		fault = "refused: " + ours.Error()
	default:
		fault = o.differ(m, got, want)
	}
	if fault == "" {
		o.tally["agree"]++
		return "", nil
	}
	if o.umpire != nil && o.sides(m, file, got) {
		o.tally["ONNX Runtime does as Tenure does"]++
		return "", nil
	}
	return o.judge(m, fault), nil
}

// sides reports whether ONNX Runtime does what Tenure does: the same result, or
// none where that is nil.
func (o *operator) sides(m *model, file []byte, got map[string]*value) bool {
	want, err := o.umpire.run(file, m.values)
	if err != nil || got == nil {
		return err != nil && got == nil
	}
	return o.differ(m, got, want) == ""
}

var verbose = flag.Bool("refusals", false, "print the models that ONNX Runtime refuses")

// differ compares all outputs.
func (o *operator) differ(m *model, got, want map[string]*value) string {
	tol := tolerances[o.name]
	if *evaluator { // it adds up in the type of the operands, in no defined order
		tol.rel, tol.abs = max(4*tol.rel, 4), max(4*tol.abs, 4)
	}
	return m.differ(got, want, tol)
}

// differ says where outputs of the model are further apart than that, "" where
// they are not.
func (m *model) differ(got, want map[string]*value, tol tolerance) string {
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		return fmt.Sprintf("got the outputs %s, want %s", a, b)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		size := scale(append([]*value{w}, m.values...)...)
		if diff := tol.apart(got[name], w, size); diff != "" {
			return fmt.Sprintf("output %s: %s", name, diff)
		}
	}
	return ""
}

// judge looks a fault up among the departures.
func (o *operator) judge(m *model, fault string) string {
	table := departures
	if *evaluator {
		table = evaluatorDepartures
	}
	for i := range table {
		if d := &table[i]; (d.ops == nil || slices.Contains(d.ops, o.name)) && d.when(m, fault) {
			o.tally["departs: "+d.why]++
			return ""
		}
	}
	o.tally["fault"]++
	return fault
}

// shrink looks for a smaller model with a fault of the same kind.
func (o *operator) shrink(m *model, fault string) (*model, string) {
	kind, best, bestFault, size := kindOf(fault), m, fault, m.bulk()
	for i := range 400 {
		small := o.model(1_000_000+i, 1+i%3)
		if small.bulk() >= size {
			continue
		}
		if f, err := o.try(small); err == nil && kindOf(f) == kind {
			best, bestFault, size = small, f, small.bulk()
		}
	}
	return best, bestFault
}

// bulk is how much there is to look at in a model.
func (m *model) bulk() int {
	n := 0
	for _, v := range m.values {
		n += 3 + len(v.data)/max(1, v.dt.Size())
	}
	for _, x := range m.graph.nodes {
		n += 2 * len(x.attrs)
	}
	return n
}
