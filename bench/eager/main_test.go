package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/tensor"
)

func TestMain(m *testing.M) {
	if os.Args[len(os.Args)-1] == engine.ServeArg {
		if err := engine.Answer(os.Stdin, os.Stdout, new(server).answer); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// Tenure plays both sides.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	args := []string{"-python", self, "-peer", "", "-elements", "65536", "-turns", "1", "-ms", "1", "-json", "-operations", "^(cast f32 to f16|tile f32|sum f32, all)$"}
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	want := []row{
		{Operation: "cast f32 to f16", Form: "into", Bytes: 6 << 16}, {Operation: "cast f32 to f16", Form: "fresh", Bytes: 6 << 16},
		{Operation: "tile f32", Form: "fresh", Bytes: 5 << 16}, // numpy cannot tile into an array
		{Operation: "sum f32, all", Form: "into", Bytes: 4<<16 + 4}, {Operation: "sum f32, all", Form: "fresh", Bytes: 4<<16 + 4},
	}
	if len(r.Rows) != len(want) {
		t.Fatalf("got rows %+v, want %d", r.Rows, len(want))
	}
	for i, w := range want {
		got := r.Rows[i]
		if got.Operation != w.Operation || got.Form != w.Form || got.Bytes != w.Bytes || got.Elements != 1<<16 ||
			got.Difference != 0 || got.One <= 0 || got.Two <= 0 || got.Numpy <= 0 {
			t.Errorf("got row %+v, want %+v with times and no difference", got, w)
		}
	}
	for want, args := range map[string][]string{
		`-elements: got "1000", want powers`:           {"-elements", "1000"},
		`-forms: got "none", want into or fresh`:       {"-forms", "none"},
		`-operations: got "cos", want something`:       {"-python", self, "-peer", "", "-operations", "cos"},
		"-operations: error parsing regexp: missing c": {"-operations", "("},
	} {
		if err := run(args, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", args, err, want)
		}
	}
}

// Every operation computes something of the size that its operands say.
func TestOperations(t *testing.T) {
	f := files{t.TempDir(), map[string]string{}}
	names := map[string]bool{}
	for _, op := range operations() {
		if names[op.name] {
			t.Errorf("%s: got it twice, want names that differ", op.name)
		}
		names[op.name] = true
		s := &server{}
		q := engine.Request{Do: "load", Model: op.name, Into: true}
		for i, x := range op.operands(1 << 16) {
			file, err := f.of(x, i)
			if err != nil {
				t.Fatalf("%s: %v", op.name, err)
			}
			q.Inputs = append(q.Inputs, engine.Input{Type: x.dt.String(), Dims: x.dims, File: file})
		}
		if _, err := s.answer(q); err != nil {
			t.Errorf("%s: %v", op.name, err)
			continue
		}
		if err := s.once(func(x *tensor.Tensor) error {
			if x.NumBytes() == 0 {
				t.Errorf("%s: got no elements, want some", op.name)
			}
			return nil
		}); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
		if err := s.forget(); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
	}
}

func TestFill(t *testing.T) {
	for rule, limits := range map[string][2]float64{"unit": {-1, 1}, "wide": {-1e6, 1e6}, "int": {-1000, 1000}, "byte": {0, 256}, "bool": {0, 2}, "index 77": {0, 77}} {
		data, err := fill(operand{rule, dtype.F64, []int{1000}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		lo, hi := limits[1], limits[0]
		for at := 0; at < len(data); at += 8 {
			v := get(data[at:], dtype.F64)
			lo, hi = min(lo, v), max(hi, v)
		}
		span := limits[1] - limits[0]
		if lo < limits[0] || hi >= limits[1] || hi-lo < 0.45*span {
			t.Errorf("%s: got numbers from %v to %v, want most of [%v, %v)", rule, lo, hi, limits[0], limits[1])
		}
	}
	if _, err := fill(operand{"unit", dtype.C64, []int{1}}, 1); err == nil {
		t.Error("complex numbers: got none, want an error")
	}
}

func TestTable(t *testing.T) {
	r := report{Machine: "test machine", When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Numpy: "numpy 1", Rows: []row{
		{Operation: "add f64", Form: "into", Elements: 1 << 16, Bytes: 24 << 16, One: 1 << 17, Two: 1 << 16, Numpy: 1 << 16},
		{Operation: "add f64", Form: "fresh", Elements: 1 << 24, Bytes: 24 << 24, One: 1 << 26, Two: 1 << 26, Numpy: 1 << 27, Difference: 1e-7},
	}}
	var b bytes.Buffer
	if err := r.table(&b, 0); err != nil {
		t.Fatal(err)
	}
	const want = `test machine, 2026-01-02T03:04:05Z
numpy 1

  operation  elements   form  Tenure GB/s  two threads  numpy  Tenure/numpy  difference
    add f64     64 Ki   into         12.0         24.0   24.0          2.00       0e+00
    add f64     16 Mi  fresh          6.0          6.0    3.0          0.50       1e-07
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := r.table(&b, 1.2); err != nil || strings.Contains(b.String(), "16 Mi") || !strings.Contains(b.String(), "64 Ki") {
		t.Errorf("above 1.2: got\n%s(error %v), want the first row alone", b.String(), err)
	}
}
