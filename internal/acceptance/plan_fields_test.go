package acceptance_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// notProved are the fields that a proof leaves out, and how much of them it
// sees. The doc of package plan/check says the same.
var notProved = map[string]string{
	"threads":             "a choice; scratch_bytes has to be its product",
	"max_concurrent":      "a choice",
	"steps[].scratch":     "at least what the operator declares, at most scratch_per_thread",
	"steps[].moved":       "a report; runs of drawn programs, models and cases count the same",
	"values[].offset":     "another place in which nothing is lost is as good",
	"unpromised[].reason": "words",
	"declined":            "entries are true; whether any is missing is not proved",
	"declined[].reason":   "words",
	"copies":              "entries are true; whether any is missing is not proved",
	"copies[].reason":     "words",
	"packed":              "entries are of weights and add up to weight_bytes; one that takes as much as it unloads may be missing",
	"packed[].form":       "a name",
}

// plansToChange are programs whose plans have something in every list.
var plansToChange = map[string]string{
	"states and views": `func @f(donate %s: f32[64], %x: f32[64], %y: f32[64]) -> (f32[64], f32[64], f32[64], f32[32]) {
		weight @w: f32[64]
		%n = add(%s, %x) "next"
		%a = neg(%n) "a"
		%h, %t = split(%a) {axis = 0} "halves"
		%p = relu(%h)
		%q = mul(%p, %t)
		%u = mul(%a, @w)
		%v = add(%u, %y)
		%z = neg(%v)
		return %n, %y, %z, %q
	}`,
	"boxes": `func @f(%x: f32[4,128], %y: f32[4,128]) -> (f32[4,256], f32[4,128]) {
		%a = neg(%x)
		%b = neg(%y)
		%c = concat(%a, %b) {axis = 1}
		%d = exp(%c)
		%h, %t = split(%c) {axis = 1, num_outputs = 2}
		%e = sub(%h, %t)
		return %d, %e
	}`,
	"a branch": `func @f(%x: f32[64], %c: bool[]) -> (f32[64]) {
		%a = neg(%x)
		%u = exp(%a)
		%r = if(%c) {
			%m = neg(%a)
			%n = relu(%m)
			return %n
		} {
			%p = relu(%a)
			%q = exp(%p)
			return %q
		}
		%v = add(%r, %u)
		return %v
	}`,
	"a loop": `func @f(%x: f32[16], %y: f32[16]) -> (f32[16], f32[16], f32[3,16]) {
		weight @i64_3: i64[]
		%o = exp(%y)
		%u = neg(%x)
		%r, %s, %k = loop(@i64_3, _, %u, %y) (%i: i64[], %c: bool[], %a: f32[16], %b: f32[16]) {
			%c2 = copy(%c)
			%m = add(%a, %o)
			%n = neg(%b)
			%t = relu(%n)
			return %c2, %t, %m, %n
		}
		%rr = neg(%r)
		%ss = neg(%s)
		%kk = neg(%k)
		return %rr, %ss, %kk
	}`,
	"sizes that depend on data": `func @f(%x: f32[3,8]) -> (i64[?,2], i64[]) {
		%n = non_zero(%x) "found"
		%t = transpose(%n) {perm = [1, 0]} "turned"
		%m = neg(%t)
		%k = abs(%m)
		%s = size(%n)
		%z = neg(%s)
		return %k, %z
	}`,
}

// planOfText compiles a program as a session does, and returns its plan with
// the proof of one.
func planOfText(t *testing.T, text string) (*plan.Plan, func(*plan.Plan) error) {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	given := ir.WeightMap{"w": make([]byte, 256), "i64_3": binary.LittleEndian.AppendUint64(nil, 3)}
	c := &pass.Context{Program: p, Constants: &weights.Overlay{Base: given}}
	if err := pass.Run(c, []pass.Pass{pass.Outputs, pass.Donate}, nil); err != nil {
		t.Fatal(err)
	}
	exe, err := exec.Compile(context.Background(), p, given, exec.Options{Threads: 2, MaxConcurrent: 3, Declined: c.Declined, Copies: c.Copies})
	if err != nil {
		t.Fatal(err)
	}
	return modeltest.Must(exe.Plan()), func(d *plan.Plan) error { return check.Check(p, d, given) }
}

// TestEveryFieldIsProved changes every field of plans, one at a time and in
// several ways, and wants each change to be found unless the field is named as
// not proved.
func TestEveryFieldIsProved(t *testing.T) {
	memorytest.Check(t)
	type subject struct {
		plan  *plan.Plan
		prove func(*plan.Plan) error
	}
	subjects := map[string]subject{}
	for name, text := range plansToChange {
		d, prove := planOfText(t, text)
		subjects[name] = subject{d, prove}
	}
	m, err := tenure.Load(filepath.Join(modeltest.Root(), "examples", "digits", "digits.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d, err := m.Plan(t.Context(), tenure.Shapes{"image": {1, 1, 8, 8}})
	if err != nil {
		t.Fatal(err)
	}
	subjects["packed weights"] = subject{d, m.Check}
	filled, accepted, tried := map[string]bool{}, map[string]bool{}, 0
	for _, name := range slices.Sorted(maps.Keys(subjects)) {
		s := subjects[name]
		if err := s.prove(s.plan); err != nil {
			t.Fatalf("%s: as made: %v", name, err)
		}
		text := documentOf(t, s.plan)
		eachChange(s.plan, func(d *plan.Plan, field, at, what string) {
			filled[field] = true
			tried++
			if s.prove(d) != nil {
				return
			}
			accepted[field] = true
			if notProved[field] == "" {
				t.Errorf("%s: %s %s: got no violation, want one", name, at, what)
			}
		})
		if now := documentOf(t, s.plan); !bytes.Equal(now, text) {
			t.Fatalf("%s: the plan itself was changed", name)
		}
	}
	for _, field := range fieldsOf("", reflect.TypeFor[plan.Plan]()) {
		if !filled[field] {
			t.Errorf("field %s: no plan has it filled", field)
		}
	}
	// Which weights are packed, and into how many bytes, depends on the
	// processor.
	even := slices.ContainsFunc(d.Packed, func(p plan.Packed) bool { return p.Bytes == p.Unloaded })
	for field := range notProved {
		if !accepted[field] && (field != "packed" || even) {
			t.Errorf("field %s: every change is found, want it off the list of what is not proved", field)
		}
	}
	t.Logf("%d changes of %d plans", tried, len(subjects))
}

func documentOf(t *testing.T, d *plan.Plan) []byte {
	t.Helper()
	text, err := d.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fieldsOf lists the fields of a struct and of the types in it: "steps",
// "steps[]" and "steps[].op".
func fieldsOf(path string, t reflect.Type) (list []string) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			list = append(list, fieldsOf(strings.TrimPrefix(path+"."+name, "."), t.Field(i).Type)...)
		}
		return list
	case reflect.Slice:
		list = append(list, path)
		return append(list, fieldsOf(path+"[]", t.Elem())...)
	}
	return []string{path}
}

// eachChange calls visit with copies of d that differ from it in one place.
// field is the place's name in fieldsOf, at the place itself.
func eachChange(d *plan.Plan, visit func(changed *plan.Plan, field, at, what string)) {
	var walk func(v reflect.Value, field, at string, find func(*plan.Plan) reflect.Value)
	walk = func(v reflect.Value, field, at string, find func(*plan.Plan) reflect.Value) {
		change := func(what string, f func(reflect.Value)) {
			c := clonePlan(d)
			f(find(c))
			visit(c, field, at, what)
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
				walk(v.Field(i), strings.TrimPrefix(field+"."+name, "."), strings.TrimPrefix(at+"."+name, "."), func(p *plan.Plan) reflect.Value { return find(p).Field(i) })
			}
		case reflect.Slice:
			changeList(v, change)
			for i := range v.Len() {
				walk(v.Index(i), field+"[]", fmt.Sprintf("%s[%d]", at, i), func(p *plan.Plan) reflect.Value { return find(p).Index(i) })
			}
		case reflect.String:
			for _, other := range []string{"", v.String() + "x", "output", "arena", "f32[1]"} {
				if other != v.String() {
					change(fmt.Sprintf("to %q", other), func(v reflect.Value) { v.SetString(other) })
				}
			}
		case reflect.Bool:
			change(fmt.Sprintf("to %t", !v.Bool()), func(v reflect.Value) { v.SetBool(!v.Bool()) })
		default:
			for _, other := range []int64{0, 1, v.Int() + 1, v.Int() - 1, v.Int() + 64, 2 * v.Int(), v.Int() / 2, plan.MaxBytes} {
				if other != v.Int() {
					change(fmt.Sprintf("to %d", other), func(v reflect.Value) { v.SetInt(other) })
				}
			}
		}
	}
	walk(reflect.ValueOf(d).Elem(), "", "", func(p *plan.Plan) reflect.Value { return reflect.ValueOf(p).Elem() })
}

// changeList removes, doubles and swaps elements.
func changeList(v reflect.Value, change func(string, func(reflect.Value))) {
	for i := range v.Len() {
		change(fmt.Sprintf("without element %d", i), func(v reflect.Value) {
			v.Set(reflect.AppendSlice(v.Slice(0, i), v.Slice(i+1, v.Len())))
		})
		change(fmt.Sprintf("element %d twice", i), func(v reflect.Value) {
			twice := reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()+1), v.Slice(0, i+1))
			v.Set(reflect.AppendSlice(twice, v.Slice(i, v.Len())))
		})
		for j := range i {
			if !reflect.DeepEqual(v.Index(i).Interface(), v.Index(j).Interface()) {
				change(fmt.Sprintf("elements %d and %d swapped", j, i), func(v reflect.Value) {
					reflect.Swapper(v.Interface())(i, j)
				})
			}
		}
	}
}

// clonePlan copies a plan with its lists.
func clonePlan(d *plan.Plan) *plan.Plan {
	c := *d
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			f.Set(reflect.AppendSlice(reflect.MakeSlice(f.Type(), 0, f.Len()), f))
		}
	}
	for i := range c.Steps {
		c.Steps[i].Reads = slices.Clone(d.Steps[i].Reads)
	}
	for i := range c.Values {
		c.Values[i].Strides = slices.Clone(d.Values[i].Strides)
	}
	c.Peak.Live = slices.Clone(d.Peak.Live)
	return &c
}
