package page_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/plan"
)

// box is where a shape is in the window.
type box struct{ X, Y, Width, Height float64 }

func (d *drawn) box(id int) (b box) {
	d.t.Helper()
	d.eval(fmt.Sprintf(`(() => { const r = document.querySelector('#plot [data-value="%d"]').getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width, Height: r.height} })()`, id), &b)
	return b
}

// The wheel zooms around the pointer, a drag moves the drawing, and the wheel
// alone scrolls the page.
func TestZoomAndMove(t *testing.T) {
	d := show(t, startBrowser(t), fixture(t, "residual"))
	const id = 5 // conv2, in the middle of the run
	x, y := d.center(fmt.Sprintf(`#plot [data-value="%d"]`, id))
	wheel := func(modifiers int) {
		d.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -200, "modifiers": modifiers}, nil)
		d.settle()
	}
	const control, shift = 2, 8
	start := d.box(id)
	wheel(control)
	wide := d.box(id)
	if wide.Width < 1.5*start.Width || math.Abs(wide.Height-start.Height) > 1 || x < wide.X || x > wide.X+wide.Width {
		t.Errorf("zoom in time at %.0f: got %+v after %+v, want it wider, as high, and under the pointer", x, wide, start)
	}
	wheel(control | shift)
	high := d.box(id)
	if high.Height < 1.5*wide.Height || math.Abs(high.Width-wide.Width) > 1 || y < high.Y || y > high.Y+high.Height {
		t.Errorf("zoom in bytes at %.0f: got %+v after %+v, want it higher, as wide, and under the pointer", y, high, wide)
	}
	d.mouse("mouseMoved", x, y)
	d.mouse("mousePressed", x, y)
	for i := range 5 {
		d.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x - 10*float64(i+1), "y": y, "button": "left", "buttons": 1}, nil)
	}
	d.mouse("mouseReleased", x-50, y)
	d.settle()
	if moved := d.box(id); math.Abs(moved.X+50-high.X) > 1.5 {
		t.Errorf("drag: got x %.1f after %.1f, want 50 less", moved.X, high.X)
	}
	var step string
	d.eval(`document.querySelector("#value").dataset.value ?? "none"`, &step)
	if step != "none" {
		t.Errorf("drag: got value %s chosen, want none: a drag is no click", step)
	}
	d.eval(`document.getElementById("plot").focus()`, nil)
	d.press("0", "0")
	if back := d.box(id); math.Abs(back.Width-start.Width) > 1 || math.Abs(back.Height-start.Height) > 1 {
		t.Errorf("whole run: got %+v, want %+v", back, start)
	}
	d.clean()
}

// A plan without steps has a page, and values whose size nothing bounds are on
// it, without bytes.
func TestPlansWithoutBytes(t *testing.T) {
	b := startBrowser(t)
	show(t, b, fixture(t, "empty")).clean()
	p := &plan.Plan{Format: plan.Format, Threads: 1, MaxConcurrent: 1,
		Steps: []plan.Step{{Call: 0, Op: "non_zero"}, {Call: 1, Op: "neg", Reads: []int{1}}},
		Values: []plan.Value{{ID: 1, Name: "found", Type: "i64[?,2]", Space: plan.SpaceOwn, Start: 1, End: 4},
			{ID: 2, Name: "turned", Type: "i64[?,2]", Space: plan.SpaceOutput, Start: 3, End: 4}},
		Unpromised: []plan.Unpromised{{Value: "found", Reason: "its size depends on data"}, {Value: "turned", Reason: "its size depends on data"}}}
	d := show(t, b, p)
	for k := range p.Steps {
		d.clickStep(k)
		d.checkAlive(k)
	}
	var height float64
	d.eval(`document.querySelector('#plot [data-value="1"]').getBoundingClientRect().height`, &height)
	if height < 2 {
		t.Errorf("value of unknown size: got a height of %.1f, want it seen", height)
	}
	d.clean()
}
