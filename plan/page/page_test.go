package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/plan/page"
)

// fixture returns the plan of plan/testdata/plan/NAME.txtar.
func fixture(t testing.TB, name string) *plan.Plan {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("..", "testdata", "plan", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.ReadJSON(bytes.NewReader(archive.Files[0].Data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

func written(t testing.TB, p *plan.Plan) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := page.Write(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// evil are names that want to be markup, script, template or terminal codes.
var evil = []string{`</script><img src=x onerror="alert(1)">`, `<!--<script>alert(2)</script>`, `"'><svg onload=alert(3)>`, "{{.Plan}}", "${alert(4)}",
	"line\u2028break\u2029", "\x1b[31mred\x00", "</pre></noscript><script>alert(5)</script>", `\u003cb\u003e`}

// hostile is a plan in which every text is one of evil.
func hostile() *plan.Plan {
	p := &plan.Plan{Format: plan.Format, Model: evil[0], Threads: 1, MaxConcurrent: 1, ArenaBytes: 640, LowerBoundBytes: 640}
	for i, text := range evil {
		p.Shapes = append(p.Shapes, plan.Shape{Name: text, Type: text})
		p.Values = append(p.Values, plan.Value{ID: i, Name: text, Type: text, Space: plan.SpaceArena, Offset: int64(64 * i), Size: 64, Start: plan.Time(2*i + 1), End: plan.Time(2 * len(evil))})
		p.Steps = append(p.Steps, plan.Step{Call: i, Op: text, Node: text, Reads: []int{max(i-1, 0)}})
		p.Declined = append(p.Declined, plan.Declined{Call: i, Op: text, Node: text, Value: evil[max(i-1, 0)], Reason: text, Bytes: 64})
		p.InPlace = append(p.InPlace, plan.InPlace{Call: 0, Value: text, Of: text, Kind: plan.AliasSame})
		p.Copies = append(p.Copies, plan.Copy{Value: text, Node: text, Reason: text})
		p.Unpromised = append(p.Unpromised, plan.Unpromised{Value: text, Node: text, Reason: text})
		p.Packed = append(p.Packed, plan.Packed{Weight: text, ID: i})
	}
	p.Peak = plan.Peak{Step: len(evil) - 1, Bytes: 64 * int64(len(evil))}
	for i := range evil {
		p.Peak.Live = append(p.Peak.Live, i)
	}
	p.LowerBoundBytes = p.Peak.Bytes
	return p
}

var (
	element = regexp.MustCompile(`<[a-zA-Z!/]`)
	data    = regexp.MustCompile(`(?s)<script type="application/json" id="plan">(.*?)</script>`)
	script  = regexp.MustCompile(`(?s)<script type="module">(.*?)</script>`)
	style   = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	policy  = regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`)
)

// The page contains the whole document, and the amount of markup does not
// depend on the names in it.
func TestNamesStayText(t *testing.T) {
	plain := fixture(t, "empty")
	p := hostile()
	text := written(t, p)
	if got, want := len(element.FindAll(text, -1)), len(element.FindAll(written(t, plain), -1)); got != want {
		t.Errorf("tags: got %d, want the %d of a page without names", got, want)
	}
	found := data.FindSubmatch(text)
	if found == nil {
		t.Fatal("page: got no document")
	}
	var read plan.Plan
	if err := json.Unmarshal(found[1], &read); err != nil {
		t.Fatal(err)
	}
	want, err := p.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read.MarshalJSON(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("document: got %s, %v, want %s", got, err, want)
	}
	if bytes.Contains(text, []byte("\u2028")) || bytes.Contains(text, []byte{0}) {
		t.Error("page: got a line separator or a zero byte as they are, want them escaped")
	}
}

// The policy names the script and the style of the page, allows no others, and
// nothing that is loaded.
func TestPolicy(t *testing.T) {
	text := written(t, fixture(t, "residual"))
	found := policy.FindSubmatch(text)
	if found == nil {
		t.Fatal("page: got no content security policy")
	}
	hash := func(part *regexp.Regexp) string {
		sum := sha256.Sum256(part.FindSubmatch(text)[1])
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	want := "default-src 'none'; style-src " + hash(style) + "; script-src " + hash(script)
	if got := html.UnescapeString(string(found[1])); got != want {
		t.Errorf("policy: got %s, want %s", got, want)
	}
	if n, inPage := bytes.Count(text, []byte("url(")), bytes.Count(text, []byte("url(#")); n != inPage {
		t.Errorf("page: got %d addresses, want only the %d of what is in the page", n, inPage)
	}
	for _, loads := range []string{"src=", "href=", "@import", "import(", "fetch(", "innerHTML", "insertAdjacentHTML", "document.write", "eval("} {
		if bytes.Contains(text, []byte(loads)) {
			t.Errorf("page: got %q, want nothing that loads or makes markup of text", loads)
		}
	}
}

// Without a script the page shows the report.
func TestReportWithoutScript(t *testing.T) {
	p := fixture(t, "residual")
	var report bytes.Buffer
	if err := p.Report(&report); err != nil {
		t.Fatal(err)
	}
	_, pre, _ := strings.Cut(string(written(t, p)), "<pre>")
	if pre, _, _ = strings.Cut(pre, "</pre>"); html.UnescapeString(pre) != report.String() {
		t.Errorf("got\n%s\nwant\n%s", pre, report.String())
	}
}

func TestInvalidPlanIsNotWritten(t *testing.T) {
	p := fixture(t, "residual")
	p.Values[3].Offset = -64
	var out bytes.Buffer
	if err := page.Write(&out, p); !errors.Is(err, plan.ErrDocument) || out.Len() > 0 {
		t.Errorf("got %v and %d bytes, want ErrDocument and none", err, out.Len())
	}
}

type brokenWriter struct{ error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.error }

func TestWriteErrorIsReturned(t *testing.T) {
	full := errors.New("disk full")
	if err := page.Write(brokenWriter{full}, fixture(t, "empty")); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

// The plans that the tests of the drawing make are ones that a document can
// hold.
func TestSyntheticPlanIsValid(t *testing.T) {
	for _, count := range []int{20, 60, 300} {
		p := synthetic(count, uint64(count))
		text, err := p.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		read, err := plan.ReadJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.InPlace) == 0 || len(p.Declined) == 0 || !reflect.DeepEqual(read.Peak, p.Peak) {
			t.Errorf("%d steps: got %d in place, %d declined, peak %v and %v", count, len(p.InPlace), len(p.Declined), p.Peak, read.Peak)
		}
	}
}
