package elementwise

import (
	"regexp"
	"strings"
	"testing"
)

var (
	nameForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	onnxForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// faults returns the faults of a row.
func faults(f *Function) (list []string) {
	add := func(wrong bool, text string) {
		if wrong {
			list = append(list, f.Name+": "+text)
		}
	}
	add(!nameForm.MatchString(f.Name), "the name is not in snake case")
	add(f.ONNX != "" && !onnxForm.MatchString(f.ONNX), "the name in models is not in camel case")
	add(f.ONNX == "" && f.Since != 0, "an opset without a name in models")
	add(faultyDoc(f.Doc), "the documentation is no verb in the indicative with what follows it, without a full stop")
	add(f.Types&Floats == 0, "floats are not among the types")
	add(f.Formula == nil, "there is no formula")
	add(len(f.Params) > 2, "more than two parameters")
	for _, p := range f.Params {
		add(p.Name == "" || p.Min >= p.Max, "parameter "+p.Name+" has no name or an empty range")
	}
	if f.AtDefaults != "" {
		same := Lookup(f.AtDefaults)
		add(len(f.Params) == 0 || same == nil || len(same.Params) != 0, "the function at the defaults is not one without parameters")
	}
	add(f.Domain != Domain{} && f.Domain.Min >= f.Domain.Max, "the domain is empty")
	return list
}

func faultyDoc(doc string) bool {
	verb, _, _ := strings.Cut(doc, " ")
	return !strings.HasSuffix(verb, "s") || strings.HasSuffix(doc, ".")
}

func TestFunctions(t *testing.T) {
	onnx, cells := map[string]bool{}, map[string]bool{}
	for _, f := range Functions() {
		for _, fault := range faults(f) {
			t.Error(fault)
		}
		if onnx[f.ONNX] && f.ONNX != "" || cells[f.Cell] && f.Cell != "" {
			t.Errorf("%s: another row has its name in models", f.Name)
		}
		onnx[f.ONNX], cells[f.Cell] = true, true
	}
	broken := &Function{Name: "Twice", ONNX: "twice", Doc: "computing.", Types: Ints, Params: []Param{{Name: "a", Min: 1, Max: 1}}, AtDefaults: "elu", Domain: Domain{1, 0}}
	if got := faults(broken); len(got) != 8 {
		t.Errorf("a row with eight faults: got %q", got)
	}
}

func TestBinaries(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Binaries() {
		if seen[f.Name] || f.ONNX != "" && seen[f.ONNX] {
			t.Errorf("%s is declared twice", f.Name)
		}
		seen[f.Name], seen[f.ONNX] = true, true
		if !nameForm.MatchString(f.Name) || f.ONNX != "" && !onnxForm.MatchString(f.ONNX) || faultyDoc(f.Doc) || f.Types == 0 {
			t.Errorf("got the row %+v", *f)
		}
		if f.Formula != nil && (f.Predicate || f.Types&Floats == 0) || f.Formula == nil && f.MaxError != (Bound{}) {
			t.Errorf("%s: a formula is of floats, and an error bound is of a formula", f.Name)
		}
		if f.Chained && (f.Predicate || f.Types&Floats == 0) {
			t.Errorf("%s: a chain is of floats", f.Name)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		d              Domain
		lo, hi         float64
		wantLo, wantHi float64
	}{
		{Domain{}, -4, 4, -4, 4},
		{Domain{-1, 1}, -4, 4, -1, 1},
		{Domain{1, 100}, -4, 4, 1, 4},
	} {
		if lo, hi := c.d.Within(c.lo, c.hi); lo != c.wantLo || hi != c.wantHi {
			t.Errorf("%v within %v to %v: got %v to %v, want %v to %v", c.d, c.lo, c.hi, lo, hi, c.wantLo, c.wantHi)
		}
	}
}
