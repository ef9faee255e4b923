package onnx

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/ir"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Every file in testdata/import has models as text (NAME.model) and for each
// the program that it is imported as (NAME.ir) or the error that refuses it
// (NAME.error).
func TestImportGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/import/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			var out txtar.Archive
			out.Comment = archive.Comment
			for _, f := range archive.Files {
				if !strings.HasSuffix(f.Name, ".model") {
					want[f.Name] = string(f.Data)
					continue
				}
				result := importText(t, f)
				out.Files = append(out.Files, f, result)
			}
			if *update {
				if err := os.WriteFile(path, txtar.Format(&out), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i := 1; i < len(out.Files); i += 2 {
				got := out.Files[i]
				if w, ok := want[got.Name]; !ok || w != string(got.Data) {
					t.Errorf("%s: got\n%swant\n%s", got.Name, got.Data, w)
				}
				delete(want, got.Name)
			}
			for name := range want {
				t.Errorf("%s: got nothing of that name", name)
			}
		})
	}
}

// importText imports a model and returns the golden file that it makes.
func importText(t *testing.T, f txtar.File) txtar.File {
	t.Helper()
	base := strings.TrimSuffix(f.Name, ".model")
	m, err := Parse(wiretest.ModelText(t, string(f.Data)), "", Options{Registry: testRegistry(t)})
	if err != nil {
		return txtar.File{Name: base + ".error", Data: []byte(err.Error() + "\n")}
	}
	defer m.Close()
	text := m.Program.String()
	for _, w := range m.Program.Weights {
		text += weightText(t, m, w)
	}
	for _, n := range m.Notes {
		text += "// " + n + "\n"
	}
	if err := ir.VerifyKnown(m.Program, ir.Known(m.Weights)); err != nil {
		t.Errorf("%s: %v\n%s", f.Name, err, text)
	}
	// A printed program parses to one that prints the same.
	again, err := ir.Parse(m.Program.String(), testRegistry(t))
	if err != nil {
		t.Errorf("%s: %v\n%s", f.Name, err, text)
	} else if again.String() != m.Program.String() {
		t.Errorf("%s: parsed again it prints\n%s, want\n%s", f.Name, again, m.Program)
	}
	return txtar.File{Name: base + ".ir", Data: []byte(text)}
}

// weightText returns the elements of a weight as text.
func weightText(t *testing.T, m *Model, w *ir.Value) string {
	t.Helper()
	data, ok := m.Weights.Bytes(w)
	if !ok {
		t.Errorf("weight %s has no bytes", w)
	}
	if w.Type.DType.Size() == 0 {
		return fmt.Sprintf("// %s = % x\n", w, data)
	}
	text := fmt.Sprintf("// %s =", w)
	for dt := w.Type.DType; len(data) > 0; data = data[dt.Size():] {
		if v, ok := lift.DecodeFloat(dt, data); ok {
			text += fmt.Sprint(" ", v)
		} else if v, ok := lift.DecodeInt(dt, data); ok {
			text += fmt.Sprint(" ", v)
		}
	}
	return text + "\n"
}
