package plan_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/plan"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixture returns the plan of testdata/plan/NAME.txtar.
func fixture(t testing.TB, name string) *plan.Plan {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "plan", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.ReadJSON(bytes.NewReader(archive.Files[0].Data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// Every fixture is written back as it was read, reported and drawn as its
// golden files say.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/plan/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("fixtures: got %d, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.ReadJSON(bytes.NewReader(archive.Files[0].Data))
			if err != nil {
				t.Fatal(err)
			}
			got := []txtar.File{{Name: "plan.json", Data: written(t, p.WriteJSON)},
				{Name: "report.txt", Data: written(t, p.Report)},
				{Name: "drawing.svg", Data: written(t, p.WriteSVG)}}
			if *update {
				archive.Files = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			for i, want := range archive.Files {
				if i >= len(got) || got[i].Name != want.Name {
					t.Fatalf("file %d: got %d files, want %s", i, len(got), want.Name)
				}
				if !bytes.Equal(got[i].Data, want.Data) {
					t.Errorf("%s: got\n%s\nwant\n%s", want.Name, got[i].Data, want.Data)
				}
			}
			if len(archive.Files) != len(got) {
				t.Errorf("files: got %d, want %d", len(archive.Files), len(got))
			}
		})
	}
}

func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// shapes reads a drawing as XML, which fails when it is not well-formed, and
// counts the rectangles with a hover text by class.
func shapes(t *testing.T, svg []byte) map[string]int {
	t.Helper()
	count := map[string]int{}
	decoder := xml.NewDecoder(bytes.NewReader(svg))
	class := ""
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return count
		}
		if err != nil {
			t.Fatalf("drawing: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "rect":
			for _, a := range start.Attr {
				if a.Name.Local == "class" {
					class = a.Value
				}
			}
		case "title":
			count[class]++
		case "script":
			t.Error("drawing: got a script, want none")
		}
	}
}

func TestDrawingShowsEveryValue(t *testing.T) {
	got := shapes(t, written(t, fixture(t, "residual").WriteSVG))
	for class, want := range map[string]int{"v fresh": 4, "v same": 3, "v view": 1, "v input": 1, "v output": 1, "v scratch": 4} {
		if got[class] != want {
			t.Errorf("%s: got %d rectangles, want %d", class, got[class], want)
		}
	}
	shapes(t, written(t, fixture(t, "hostile").WriteSVG))
}

// The drawing is made of whole numbers, so a run of any size stays within its
// frame.
func TestDrawingOfHugePlan(t *testing.T) {
	p := &plan.Plan{Format: plan.Format, ArenaBytes: 1 << 61, Threads: 1, MaxConcurrent: 1, Steps: make([]plan.Step, 3000)}
	for i := range p.Steps {
		p.Steps[i].Call = i
	}
	p.Values = []plan.Value{{ID: 1, Name: "half", Space: plan.SpaceArena, Offset: 1 << 60, Size: 1 << 60, Start: 1, End: p.LastTime()}}
	svg := string(written(t, p.WriteSVG))
	// Upper half of an arena of 440 pixels that begins at 172.
	if want := `y="172" width="1599.74" height="220" class="v fresh"`; !strings.Contains(svg, want) {
		t.Errorf("drawing: got no rectangle %s", want)
	}
}

// A long list is cut where that saves lines, and says how much it left out.
func TestReportCutsLists(t *testing.T) {
	for entries, want := range map[int]string{21: "", 22: "and 2 more in the document"} {
		p := fixture(t, "residual")
		p.Declined = nil
		for range entries {
			p.Declined = append(p.Declined, plan.Declined{Op: "add", Reason: "read again later", Bytes: 64})
		}
		report := string(written(t, p.Report))
		shown := strings.Count(report, "read again later")
		if want == "" && shown != entries || want != "" && (shown != 20 || !strings.Contains(report, want)) {
			t.Errorf("%d entries: got %d of them in\n%s", entries, shown, report)
		}
	}
}
