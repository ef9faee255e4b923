package page_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/plan"
)

// drawn is a plan that a browser shows.
type drawn struct {
	*browser
	p *plan.Plan
}

// large is a plan as a transformer of a hundred layers has it.
var large = sync.OnceValue(func() *plan.Plan { return synthetic(3000, 7) })

func show(t *testing.T, b *browser, p *plan.Plan) *drawn {
	t.Helper()
	b.open(written(t, p), 1400, 1000, "light")
	return &drawn{b, p}
}

// clickStep clicks into the column of a step, in a view of the whole run, where
// no value is.
func (d *drawn) clickStep(k int) {
	d.t.Helper()
	var at []float64
	d.eval(`(() => { const plot = document.getElementById("plot"), f = document.querySelector("#frame rect"); plot.scrollIntoView({block: "end"});
		const r = plot.getBoundingClientRect(), w = plot.viewBox.baseVal.width;
		return [r.left, r.bottom, r.width / w, Number(f.getAttribute("x")), Number(f.getAttribute("width"))] })()`, &at)
	end := 2 * len(d.p.Steps)
	for _, v := range d.p.Values {
		end = max(end, int(v.End))
	}
	d.click(at[0]+at[2]*(at[3]+at[4]*float64(2*k+1)/float64(end)), at[1]-20*at[2])
}

// listed is a row of the table of what lives.
type listed struct {
	ID      int
	Counted int64
	Text    string
}

func (d *drawn) alive() (step int, rows []listed) {
	d.t.Helper()
	var table struct {
		Step int
		Rows []listed
	}
	d.eval(`({Step: Number(document.querySelector("#alive").dataset.step), Rows: [...document.querySelectorAll("#alive [data-alive]")].map((r) => ({ID: Number(r.dataset.alive), Counted: Number(r.dataset.counted), Text: [...r.cells].map((c) => c.textContent).join("|")}))})`, &table)
	return table.Step, table.Rows
}

// checkAlive compares the table with the values that live in step k, and its
// sum with the bytes that live then.
func (d *drawn) checkAlive(k int) {
	d.t.Helper()
	step, rows := d.alive()
	if step != k {
		d.t.Errorf("step: got %d, want %d", step, k)
	}
	want := map[int]plan.Value{}
	for _, v := range d.p.Values {
		if v.Space != plan.SpaceWeight && v.Start < plan.Time(2*k+2) && v.End > plan.Time(2*k) {
			want[v.ID] = v
		}
	}
	var sum int64
	for _, row := range rows {
		v, ok := want[row.ID]
		if !ok {
			d.t.Errorf("step %d: got value %d, want it not, or once", k, row.ID)
		}
		if !strings.Contains(row.Text, v.Name) {
			d.t.Errorf("step %d: got %q, want the name %q in it", k, row.Text, v.Name)
		}
		sum += row.Counted
		delete(want, row.ID)
	}
	if len(want) > 0 {
		d.t.Errorf("step %d: got no %v, want them", k, slices.Sorted(maps.Keys(want)))
	}
	if live := max(liveAt(d.p, plan.Time(2*k)), liveAt(d.p, plan.Time(2*k+1))); sum != live {
		d.t.Errorf("step %d: got a sum of %d bytes, want the %d that live", k, sum, live)
	}
}

// The first table is that of the peak: its counts add up to the plan's peak. A
// click on any step lists what lives then.
func TestStepsListWhatLives(t *testing.T) {
	b := startBrowser(t)
	for name, p := range map[string]*plan.Plan{"residual": fixture(t, "residual"), "hostile": fixture(t, "hostile"), "strided": fixture(t, "strided"), "synthetic": synthetic(60, 3)} {
		d := show(t, b, p)
		d.checkAlive(p.Peak.Step)
		var sum int64
		_, rows := d.alive()
		for _, row := range rows {
			sum += row.Counted
		}
		if sum != p.Peak.Bytes {
			t.Errorf("%s: got a sum of %d bytes at the peak, want %d", name, sum, p.Peak.Bytes)
		}
		for k := range p.Steps {
			d.clickStep(k)
			d.checkAlive(k)
		}
		d.press("p", "p")
		d.clean()
	}
}

// clean reports what went wrong in the page.
func (d *drawn) clean() {
	d.t.Helper()
	for _, fault := range d.faults {
		d.t.Errorf("browser: %s", fault)
	}
	d.faults = nil
}

// Every value that has a place is one shape, and every value one row of the
// list of all.
func TestEveryValueIsThereOnce(t *testing.T) {
	b := startBrowser(t)
	for name, p := range map[string]*plan.Plan{"residual": fixture(t, "residual"), "strided": fixture(t, "strided"), "3000 steps": large()} {
		d := show(t, b, p)
		d.click(d.center("#list-all summary"))
		for _, attribute := range []string{"data-value", "data-row"} {
			scope := map[string]string{"data-value": "#plot", "data-row": "#list-all"}[attribute]
			var ids []int
			d.eval(fmt.Sprintf(`[...document.querySelectorAll("%s [%s]")].map((e) => Number(e.getAttribute("%[2]s")))`, scope, attribute), &ids)
			count := map[int]int{}
			for _, id := range ids {
				count[id]++
			}
			for _, v := range p.Values {
				if count[v.ID] != 1 {
					t.Errorf("%s: %s %d: got it %d times, want once", name, attribute, v.ID, count[v.ID])
				}
			}
			if len(ids) != len(p.Values) {
				t.Errorf("%s: %s: got %d, want %d", name, attribute, len(ids), len(p.Values))
			}
		}
		d.clean()
	}
}

// Names are shown as they are, and none of them makes an element or runs.
func TestHostileNamesAreShown(t *testing.T) {
	d := show(t, startBrowser(t), hostile())
	for k := range d.p.Steps {
		d.clickStep(k)
		d.checkAliveIDs(k)
	}
	d.eval(`document.querySelectorAll("details").forEach((e) => { e.open = true })`, nil)
	d.settle()
	var made []string
	d.eval(`[...document.querySelectorAll("img, iframe, object, b:not(.hint b), script, [onerror], [onload]")].map((e) => e.outerHTML.slice(0, 80))`, &made)
	if len(made) != 2 || !strings.Contains(made[0], "application/json") || !strings.Contains(made[1], "module") {
		t.Errorf("elements: got %q, want the two scripts of the page", made)
	}
	var names []string
	d.eval(`[...document.querySelectorAll("#list-all tbody td:nth-child(2)")].map((e) => e.textContent)`, &names)
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(evil)); !slices.Equal(names, want) {
		t.Errorf("names: got %q, want %q", names, want)
	}
	d.clean()
}

func (d *drawn) checkAliveIDs(k int) {
	d.t.Helper()
	step, rows := d.alive()
	if step != k || len(rows) != k+1 {
		d.t.Errorf("step %d: got step %d with %d values, want %d", k, step, len(rows), k+1)
	}
}

// All spaces are drawn at one scale, and the bar and the figures have the
// plan's bytes.
func TestDrawnToScale(t *testing.T) {
	p := synthetic(60, 5)
	d := show(t, startBrowser(t), p)
	d.click(d.center("#fit-all"))
	var heights map[string]float64
	d.eval(`Object.fromEntries([...document.querySelectorAll("#plot [data-value]")].map((e) => [e.dataset.value, Number(e.getAttribute("height"))]))`, &heights)
	held := map[int]int64{}
	for _, v := range p.Values {
		held[v.ID] = v.Size
	}
	for _, w := range p.Packed {
		held[w.ID] += w.Bytes - w.Unloaded
	}
	spaces, scale := map[plan.Space]int{}, 0.0
	for _, v := range p.Values {
		if v.Space == plan.SpaceInput && v.ID == p.Values[0].ID {
			scale = heights[fmt.Sprint(v.ID)] / float64(v.Size)
		}
	}
	for _, v := range p.Values {
		got, want := heights[fmt.Sprint(v.ID)], scale*float64(held[v.ID])
		if want < 3 {
			continue // thin shapes are kept large enough to be seen
		}
		spaces[v.Space]++
		if math.Abs(got-want) > 0.02+0.01*want {
			t.Errorf("%s: got a height of %.2f for %d bytes, want %.2f", v.Name, got, held[v.ID], want)
		}
	}
	for _, space := range []plan.Space{plan.SpaceInput, plan.SpaceOutput, plan.SpaceArena, plan.SpaceWeight} {
		if spaces[space] == 0 {
			t.Errorf("%s: got no value that is drawn large enough to measure, want one", space)
		}
	}
	var parts, figures map[string]int64
	d.eval(`Object.fromEntries([...document.querySelectorAll("[data-part]")].map((e) => [e.dataset.part, Number(e.dataset.bytes)]))`, &parts)
	d.eval(`Object.fromEntries([...document.querySelectorAll("[data-figure]")].map((e) => [e.dataset.figure, Number(e.dataset.bytes)]))`, &figures)
	if want := map[string]int64{"weights": p.WeightBytes, "arena": 3 * p.ArenaBytes, "scratch": 3 * p.ScratchBytes, "inputs": 3 * 4 * 2048, "outputs": 3 * (p.IOBytes - 4*2048)}; !maps.Equal(parts, want) {
		t.Errorf("bar: got %v, want %v", parts, want)
	}
	if want := map[string]int64{"weights": p.WeightBytes, "arena": p.ArenaBytes, "scratch": p.ScratchBytes, "inputs, outputs": p.IOBytes, "per run": p.PerRun(), "total": p.Total()}; !maps.Equal(figures, want) {
		t.Errorf("figures: got %v, want %v", figures, want)
	}
	d.clean()
}

// checkHovers points at values and compares their tooltips.
func (d *drawn) checkHovers(wants map[int][]string) {
	d.t.Helper()
	for id, want := range wants {
		x, y := d.center(fmt.Sprintf(`#plot [data-value="%d"]`, id))
		d.mouse("mouseMoved", x, y)
		d.settle()
		var text string
		d.eval(`document.getElementById("under").hidden ? "" : document.getElementById("under").innerText`, &text)
		for _, want := range want {
			if !strings.Contains(text, want) {
				d.t.Errorf("value %d: got %q, want %q in it", id, text, want)
			}
		}
	}
}

// The tooltip of a value names its writer, its last reader, its size, and the
// reason why it was not put in place.
func TestHover(t *testing.T) {
	d := show(t, startBrowser(t), fixture(t, "residual"))
	d.checkHovers(map[int][]string{
		2: {"stem_relu", "f32[1,16,32,32], 64.0 KiB (65536 bytes)", "arena at 0, steps 1 to 5", "written by step 1: relu (/stem/relu)", "last read by step 5: add (/block/add), the last of 2 readers", "in place: in the bytes of stem"},
		5: {"conv2", "written by step 4: conv (/block/conv2)", "last read by step 5: add (/block/add)", "its bytes were not taken by step 5: the other operand was taken"},
		9: {"logits", "output, step 8 to the end", "an output"},
	})
	d = show(t, d.browser, fixture(t, "strided"))
	d.checkHovers(map[int][]string{
		2: {"most", "f32[2,1,8], 64 B", "arena at 96 to 256, strides 32 8 1, steps 1 to 5"},
		5: {"corner", "f32[2,1,4], 32 B", "arena at 304 to 448, strides 32 4 1, steps 4 to 5", "a view of neg"},
	})
	p := synthetic(60, 3)
	d = show(t, d.browser, p)
	// A value whose step could have taken an operand's bytes and did not says
	// why.
	refused := p.Declined[0]
	at := slices.IndexFunc(p.Values, func(v plan.Value) bool { return v.Start == plan.Time(2*refused.Call+1) })
	d.eval(fmt.Sprintf(`document.querySelector('#search').value = %q; document.querySelector('#search').dispatchEvent(new Event("input"))`, p.Values[at].Name), nil)
	d.click(d.center("#found button"))
	var card string
	d.eval(`document.getElementById("value").innerText`, &card)
	if want := "not in place of " + refused.Value + ": " + refused.Reason; !strings.Contains(card, want) {
		t.Errorf("card: got %q, want %q in it", card, want)
	}
	d.clean()
}

// Columns sort up and down, and say so.
func TestTablesSort(t *testing.T) {
	p := synthetic(60, 3)
	d := show(t, startBrowser(t), p)
	sizes := map[int]int64{}
	for _, v := range p.Values {
		sizes[v.ID] = v.Size
	}
	for _, test := range []struct {
		sorted string
		order  func(a, b int64) bool
	}{{"descending", func(a, b int64) bool { return a >= b }}, {"ascending", func(a, b int64) bool { return a <= b }}} {
		d.click(d.center("#alive th:nth-child(2) button"))
		var sorted string
		d.eval(`document.querySelector("#alive th:nth-child(2)").getAttribute("aria-sort")`, &sorted)
		if sorted != test.sorted {
			t.Errorf("got %q, want %q", sorted, test.sorted)
		}
		_, rows := d.alive()
		for i := range rows[1:] {
			if a, b := sizes[rows[i].ID], sizes[rows[i+1].ID]; !test.order(a, b) {
				t.Errorf("%s: got %d before %d", test.sorted, a, b)
			}
		}
	}
	d.clean()
}

// Among 3,000 steps the reader finds a value by a part of its name, zooms
// there, walks and comes back, by keys alone.
func TestFindAndMove(t *testing.T) {
	p := large()
	d := show(t, startBrowser(t), p)
	d.press("/", "/")
	d.call("Input.insertText", map[string]any{"text": "layers.77/"}, nil)
	d.settle()
	want := 0
	for _, v := range p.Values {
		if strings.Contains(v.Name, "layers.77/") {
			want++
		}
	}
	for _, s := range p.Steps {
		if strings.Contains(s.Node, "layers.77/") {
			want++
		}
	}
	var count string
	d.eval(`document.getElementById("matches").textContent`, &count)
	if count != fmt.Sprintf("%d matches", want) || want < 40 {
		t.Errorf("matches: got %q, want %d", count, want)
	}
	d.press("Enter", "\r")
	var chosen, written int
	d.eval(`Number(document.getElementById("value").dataset.value)`, &chosen)
	at := slices.IndexFunc(p.Values, func(v plan.Value) bool { return strings.Contains(v.Name, "layers.77/") })
	if chosen != p.Values[at].ID {
		t.Errorf("chosen: got value %d, want %d", chosen, p.Values[at].ID)
	}
	d.eval(`document.getElementById("plot").focus()`, nil)
	width := func() (w float64) {
		d.eval(fmt.Sprintf(`document.querySelector('#plot [data-value="%d"]').getBoundingClientRect().width`, chosen), &w)
		return w
	}
	before := width()
	for range 12 {
		d.press("+", "+")
	}
	if after := width(); after < 20*before || after < 12 {
		t.Errorf("zoom: got a width of %.1f after %.1f, want it many times as wide", after, before)
	}
	d.eval(`Number(document.getElementById("step").dataset.step)`, &written)
	d.press("ArrowRight", "")
	d.checkAlive(written + 1)
	d.press("End", "")
	d.checkAlive(len(p.Steps) - 1)
	d.press("Escape", "")
	d.checkAlive(p.Peak.Step)
	d.clean()
}

// Pictures of models, in light and dark and for print. What they show of names
// can be read and told apart. With -artifacts the pictures stay.
func TestPictures(t *testing.T) {
	b := startBrowser(t)
	models := filepath.Join(modeltest.SharedRoot(), "models")
	decoder := map[string][]int{"input_ids": {1, 16}, "attention_mask": {1, 64}}
	for i := range 3 {
		decoder[fmt.Sprintf("past_key_values.%d.key", i)], decoder[fmt.Sprintf("past_key_values.%d.value", i)] = []int{1, 4, 48, 24}, []int{1, 4, 48, 24}
	}
	for _, test := range []struct {
		name, file string
		shapes     map[string][]int
	}{
		{"digits", filepath.Join(modeltest.Root(), "examples", "digits", "digits.onnx"), map[string][]int{"image": {1, 1, 8, 8}}},
		{"densenet", filepath.Join(models, "light_densenet121", "model.onnx"), nil},
		{"decoder", filepath.Join(models, "gpt2_tiny", "model.onnx"), decoder},
		{"3000 steps", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := large()
			if test.file != "" {
				if _, err := os.Stat(test.file); err != nil {
					t.Skipf("got no model %s; TENURE_SHARED names another folder", filepath.Base(filepath.Dir(test.file)))
				}
				p = modeltest.PlanOf(t, test.file, test.shapes)
			}
			page := *b
			page.t = t
			d := &drawn{&page, p}
			for _, scheme := range []string{"light", "dark", "print"} {
				d.open(written(t, p), 1400, 1000, scheme)
				if scheme == "print" {
					d.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
				}
				d.keep(t, scheme, true)
			}
			d.open(written(t, p), 1400, 1000, "light")
			d.checkAlive(p.Peak.Step)
			d.click(d.center("#fit-run"))
			d.checkLabels(t)
			d.keep(t, "run", false)
			d.click(d.center("#fit-peak"))
			d.checkLabels(t)
			d.keep(t, "peak", false)
			d.clean()
		})
	}
}

// keep takes a picture, which has to show something, and puts it among the
// test's artifacts.
func (d *drawn) keep(t *testing.T, name string, whole bool) {
	t.Helper()
	text := d.picture(whole)
	picture, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := colours(picture); n < 20 {
		t.Errorf("%s: got %d colours, want a drawing", name, n)
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+".png"), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func colours(picture image.Image) int {
	seen := map[any]bool{}
	for y := picture.Bounds().Min.Y; y < picture.Bounds().Max.Y; y += 5 {
		for x := picture.Bounds().Min.X; x < picture.Bounds().Max.X; x += 5 {
			seen[picture.At(x, y)] = true
		}
	}
	return len(seen)
}

// checkLabels wants labels to lie within their shapes and to be whole names or
// enough of them. Inputs and outputs that can be told apart by their names can
// be told apart by their labels.
func (d *drawn) checkLabels(t *testing.T) {
	t.Helper()
	var labels []struct {
		ID                       int
		Text                     string
		Left, Right, Top, Bottom float64 // how far the label is within its shape
	}
	d.eval(`[...document.querySelectorAll("#plot [data-label]")].map((e) => { const l = e.getBoundingClientRect(), s = document.querySelector('#plot [data-value="' + e.dataset.label + '"]').getBoundingClientRect();
		return {ID: Number(e.dataset.label), Text: e.textContent, Left: l.left - s.left, Right: s.right - l.right, Top: l.top - s.top, Bottom: s.bottom - l.bottom} })`, &labels)
	if len(labels) == 0 {
		t.Error("labels: got none, want some")
	}
	names, seen := map[int]plan.Value{}, map[string]string{}
	for _, v := range d.p.Values {
		names[v.ID] = v
	}
	for _, l := range labels {
		v := names[l.ID]
		if min(l.Left, l.Right) < -1 || min(l.Top, l.Bottom) < -3 {
			t.Errorf("label %q: got it %.1f, %.1f, %.1f, %.1f within its shape, want none of it outside", l.Text, l.Left, l.Right, l.Top, l.Bottom)
		}
		rest, letters := v.Name, 0
		for _, part := range strings.Split(l.Text, "…") {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("label: got %q for %q", l.Text, v.Name)
			}
			rest, letters = after, letters+len(part)
		}
		if l.Text != v.Name && letters < 3 {
			t.Errorf("label: got %q for %q, want more of it", l.Text, v.Name)
		}
		if v.Space != plan.SpaceInput && v.Space != plan.SpaceOutput {
			continue
		}
		if other, ok := seen[l.Text]; ok && other != v.Name {
			t.Errorf("label: got %q for %q and %q", l.Text, v.Name, other)
		}
		seen[l.Text] = v.Name
	}
}
