package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
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
	file := filepath.Join(t.TempDir(), "eager.json")
	args := []string{"-python", self, "-peer", "", "-elements", "65536", "-turns", "1", "-ms", "1", "-above", "1e9", "-results", file, "-operations", "^(cast f32 to f16|tile f32|sum f32, all)$"}
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cast f32 to f16 into", "cast f32 to f16 fresh", "tile f32 fresh", // numpy cannot tile into an array
		"sum f32, all into", "sum f32, all fresh"}
	if len(r.Rows) != len(want) {
		t.Fatalf("got rows %+v, want %d", r.Rows, len(want))
	}
	for i, w := range want {
		row := r.Rows[i]
		if got := row.Case[0] + " " + row.Case[2]; got != w || row.Case[1] != "64 Ki" {
			t.Errorf("got case %q, want %s of 64 Ki", row.Case, w)
		}
		for _, name := range []string{"Tenure GB/s", "two threads GB/s", "numpy GB/s", "ratio"} {
			if row.Figures[name].Median <= 0 {
				t.Errorf("%s: got %s %+v, want more than 0", w, name, row.Figures[name])
			}
		}
		if row.Figures["difference"].Median != 0 {
			t.Errorf("%s: got difference %v, want 0", w, row.Figures["difference"].Median)
		}
	}
	if strings.Contains(out.String(), "tile") {
		t.Errorf("-above 1e9: got\n%s\nwant no row", out.String())
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
