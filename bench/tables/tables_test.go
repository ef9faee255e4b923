package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// TestPages is what keeps every page's tables and the results one: a figure
// that is changed in one of them fails it, and so does a row with a cell too
// many.
func TestPages(t *testing.T) {
	if err := run(filepath.Join("..", ".."), true); err != nil {
		t.Error(err)
	}
}

// The check runs on a copy of the project's pages and results after a change.
func TestCheckFinds(t *testing.T) {
	const page = "# Page\n\n<!-- table: chain -->\n<!-- end of table -->\n\nText.\n"
	for name, c := range map[string]struct {
		change func(root string) // after the pages were written
		want   string            // in the error; none when empty
	}{
		"nothing": {func(string) {}, ""},
		"a figure of the page": {func(root string) {
			edit(t, filepath.Join(root, "page.md"), "| 3.8 |", "| 3.9 |")
		}, "differs from its results"},
		"a figure of the results": {func(root string) {
			edit(t, filepath.Join(root, "bench", "results", "memory.json"), `"peak MiB":{"median":3.814697265625}`, `"peak MiB":{"median":3.914697265625}`)
		}, "differs from its results"},
		"the day": {func(root string) {
			edit(t, filepath.Join(root, "bench", "results", "memory.json"), `"date": "20`, `"date": "19`)
		}, "differs from its results"},
		"a cell too many, elsewhere": {func(root string) {
			write(t, filepath.Join(root, "other.md"), "| a | b |\n|---|---|\n| `1 | 2` | 3 |\n| 1 | 2 | 3 |\n")
		}, "other.md: line 4: got a row of 3 cells, want 2"},
		"an unknown name": {func(root string) {
			write(t, filepath.Join(root, "other.md"), "<!-- table: none -->\n<!-- end of table -->\n")
		}, "table none: got a name without a definition"},
		"a marker without an end": {func(root string) {
			write(t, filepath.Join(root, "other.md"), "<!-- table: chain -->\n| a |\n")
		}, "got no"},
		"a figure that is not there": {func(root string) {
			edit(t, filepath.Join(root, "bench", "results", "memory.json"), `"floor"`, `"roof"`)
		}, "no figure"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.CopyFS(filepath.Join(root, "bench", "results"), os.DirFS(filepath.Join("..", "results"))); err != nil {
				t.Fatal(err)
			}
			text := page
			for _, d := range definitions {
				if d.name != "chain" {
					text += "\n" + begin + d.name + " -->\n" + end + "\n"
				}
			}
			write(t, filepath.Join(root, "page.md"), text)
			if err := run(root, true); err == nil {
				t.Error("empty tables: got no error, want one")
			}
			if err := run(root, false); err != nil {
				t.Fatal(err)
			}
			c.change(root)
			err := run(root, true)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

func edit(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		t.Fatalf("%s: got no %q to change", file, from)
	}
	write(t, file, strings.Replace(string(data), from, to, 1))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Every file of results is whole, and a table shows it.
func TestResults(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "results", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files (error %v), want some", len(files), err)
	}
	shown := map[string]bool{}
	for _, d := range definitions {
		for _, file := range d.files {
			shown[file+".json"] = true
		}
	}
	for _, file := range files {
		if _, err := results.Read(file); err != nil {
			t.Error(err)
		}
		if !shown[filepath.Base(file)] {
			t.Errorf("%s: got no table that shows it, want one", file)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{ms(0.001), "0.001"}, {ms(0.412), "0.41"}, {ms(1.69), "1.69"}, {ms(14.8), "14.8"}, {ms(226.4), "226.4"},
		{micros(16.5), "16.5"}, {micros(175), "175"}, {micros(1125), "1,125"}, {micros(3557623), "3,557,623"},
		{mib(2.58), "2.58"}, {mib(41.96), "42.0"}, {mib(390.6), "391"},
		{difference(0, 1), "0"}, {difference(2e-2, 3e4), "2e-02 of 3e+04"}, {difference(3e-6, 3.7), "3e-06 of 3.7"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// TestEveryCommandWritesResults: a benchmark whose figures cannot be written to
// a file would be pasted by hand.
func TestEveryCommandWritesResults(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "*", "main.go"))
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d commands (error %v), want all", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "tables" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "utput.Flags(") || !strings.Contains(string(text), "utput.Write(") && !strings.Contains(string(text), ", output)") {
			t.Errorf("%s: got a command without -json and -results, want both", file)
		}
	}
}
