package pass_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var all = map[string]pass.Pass{}

func init() {
	for _, p := range slices.Concat(pass.Load, pass.Specialise) {
		all[p.Name] = p
	}
}

// fill returns bytes for a weight that depend on its type alone: small positive
// numbers, so that square roots and divisions stay finite.
func fill(t op.Type) []byte {
	n, err := t.Bytes()
	if err != nil {
		return nil
	}
	data := make([]byte, n)
	switch t.DType {
	case dtype.F32:
		for i := range n / 4 {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(i%7+1)/4))
		}
	default:
		for i := range data {
			data[i] = byte(i % 3)
		}
	}
	return data
}

func context(t *testing.T, text string) *pass.Context {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	given := ir.WeightMap{}
	for _, w := range p.Weights {
		given[w.Name] = fill(w.Type)
	}
	return &pass.Context{Program: p, Constants: &weights.Overlay{Base: given}, MaxFold: 64 << 10}
}

// TestGolden runs the passes that a file's comment names ("passes: fold dce")
// over its section `in` and compares the program with the section `want`.
// Reports of the passes stand in the section `reports`, where there is one.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no golden files (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file) })
	}
}

func golden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(archive.Comment), "\n")
	names, ok := strings.CutPrefix(first, "passes: ")
	if !ok {
		t.Fatalf("got %q, want passes: NAME...", first)
	}
	section := map[string]*txtar.File{}
	for i := range archive.Files {
		section[archive.Files[i].Name] = &archive.Files[i]
	}
	ctx := context(t, string(section["in"].Data))
	var passes []pass.Pass
	for _, n := range strings.Fields(names) {
		if all[n].Run == nil {
			t.Fatalf("there is no pass %q", n)
		}
		passes = append(passes, all[n])
	}
	verify := func(_ pass.Pass, p *ir.Program) error { return ir.Verify(p) }
	got := ""
	if err := pass.Run(ctx, passes, verify); err != nil {
		got = "error: " + err.Error() + "\n"
	} else {
		got = ctx.Program.String()
	}
	compare(t, archive, section, "want", got)
	if section["reports"] != nil {
		compare(t, archive, section, "reports", reports(ctx))
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func compare(t *testing.T, a *txtar.Archive, section map[string]*txtar.File, name, got string) {
	t.Helper()
	if !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	if *update {
		if section[name] == nil {
			a.Files = append(a.Files, txtar.File{Name: name})
			section[name] = &a.Files[len(a.Files)-1]
		}
		section[name].Data = []byte(got)
		return
	}
	if section[name] == nil || string(section[name].Data) != got {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, section[name].Data)
	}
}

func reports(ctx *pass.Context) string {
	var b strings.Builder
	for _, d := range ctx.Declined {
		fmt.Fprintf(&b, "declined: call %d %s operand %d (%s): %s, %d bytes\n", d.Call, d.Op, d.Operand, d.Value, d.Reason, d.Bytes)
	}
	for _, c := range ctx.Copies {
		fmt.Fprintf(&b, "copy: %s: %s, %d bytes\n", c.Value, c.Reason, c.Bytes)
	}
	return b.String()
}

func TestEveryPassHasAGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for name, p := range all {
		if p.Doc == "" {
			t.Errorf("pass %s has no description", name)
		}
		if !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), name) }) {
			t.Errorf("pass %s has no golden file testdata/%s*.txtar", name, name)
		}
	}
}
