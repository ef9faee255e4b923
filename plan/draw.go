package plan

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteSVG draws p: time runs across, one column per step, and addresses run
// up. Every value of the arena is a rectangle over the bytes that it holds
// while it lives, above it is the curve of live bytes with the step of the peak
// marked, below it are the lives of inputs and outputs, and the scratch of
// every step. Hovering names the value. The picture follows the reader's light
// or dark theme.
func (p *Plan) WriteSVG(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	_, err := w.Write(p.drawing())
	return err
}

// Measures of the drawing in pixels.
const (
	marginLeft   = 84
	marginRight  = 24
	headHeight   = 74
	curveHeight  = 64
	arenaHeight  = 440
	laneHeight   = 12
	scratchSize  = 44
	panelGap     = 34
	axisHeight   = 40
	stepWidth    = 14 // of a column, where the picture has room
	widthAtLeast = 880
	widthAtMost  = 1600
	labelSize    = 7 // of a letter on a rectangle
)

// kinds are the kinds of values on the drawing, with the colour of each in
// light and dark.
var kinds = []struct{ class, label, light, dark string }{
	{"fresh", "own place", "#4c78c8", "#5b8be0"},
	{"same", "in place of an operand", "#1f8f72", "#35b898"},
	{"view", "view or part of another value", "#8a69c6", "#a98be0"},
	{"input", "input", "#d08a1d", "#e0a040"},
	{"output", "output", "#c4566e", "#dc6f87"},
	{"scratch", "scratch", "#8a8f98", "#7d838d"},
}

// A canvas is a drawing in the making.
type canvas struct {
	*Plan
	out   bytes.Buffer
	plot  int // width of the time axis
	times Time
	kind  map[string]string // class of the values that took the bytes of another
	of    map[string]string // whose bytes those are
}

func (p *Plan) drawing() []byte {
	c := &canvas{Plan: p, times: p.LastTime(), kind: map[string]string{}, of: map[string]string{}}
	c.plot = min(max(len(p.Steps)*stepWidth, widthAtLeast), widthAtMost)
	for _, x := range p.InPlace {
		c.kind[x.Value], c.of[x.Value] = "same", x.Of
		if x.Kind == AliasView || x.Kind == AliasPart {
			c.kind[x.Value] = "view"
		}
	}
	lanes := c.lanes()
	curve := headHeight
	arena := curve + curveHeight + panelGap
	lane := arena + arenaHeight + panelGap
	scratch := lane + len(lanes)*laneHeight
	if len(lanes) > 0 {
		scratch += panelGap
	}
	axis := scratch
	if p.ScratchBytes > 0 {
		axis += scratchSize + panelGap
	}
	axis -= panelGap / 2
	c.open(marginLeft+c.plot+marginRight, axis+axisHeight)
	c.drawCurve(curve)
	c.drawArena(arena)
	c.drawLanes(lane, lanes)
	c.drawScratch(scratch)
	c.drawPeak(curve, axis)
	c.drawAxis(axis)
	c.out.WriteString("</svg>\n")
	return c.out.Bytes()
}

// x returns the column of a moment in hundredths of a pixel, the unit in which
// the drawing computes: whole numbers give the same picture on every machine.
func (c *canvas) x(t Time) int64 { return 100*marginLeft + 100*int64(c.plot)*int64(t)/int64(c.times) }

// scale maps n of total onto height pixels, in hundredths.
func scale(n, total int64, height int) int64 {
	// Both are shortened alike where the product would not fit.
	for total > 1<<40 {
		n, total = n>>1, total>>1
	}
	return n * 100 * int64(height) / max(total, 1)
}

// px prints hundredths of a pixel.
func px(hundredths int64) string {
	text := fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func escape(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a buffer takes every write
	return out.String()
}

func (c *canvas) printf(format string, args ...any) { fmt.Fprintf(&c.out, format, args...) }

// text writes a label at whole pixels.
func (c *canvas) text(x, y int, class, label string) {
	c.printf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, escape(label))
}

// rect writes a rectangle with hundredths of pixels, and its hover text where
// it has one.
func (c *canvas) rect(x, y, width, height int64, class, hover string) {
	c.printf("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" class=\"%s\"", px(x), px(y), px(width), px(height), class)
	if hover == "" {
		c.printf("/>\n")
		return
	}
	c.printf("><title>%s</title></rect>\n", escape(hover))
}

func (c *canvas) open(width, height int) {
	c.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n",
		width, height, width, height)
	c.printf("<title>memory plan for %s</title>\n<style>\n", escape(c.subject()))
	c.printf("text{font:11px system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;fill:#5a6170}\n" +
		".head{font-size:15px;font-weight:600;fill:#1b1f27}.panel{font-weight:600;fill:#333a47}.right{text-anchor:end}\n" +
		".mid{text-anchor:middle}.on{font-size:10px;fill:#fff;pointer-events:none}\n" +
		".paper{fill:#fff}.ground{fill:#f3f5f8}.grid{stroke:#d9dde4}.edge{stroke:#a6adba}\n" +
		".curve{fill:#4c78c8;fill-opacity:.28;stroke:#4c78c8}.peak{fill:#d23f3f;fill-opacity:.13}.mark{fill:#c22f2f;font-weight:600}\n" +
		".bound{stroke:#c22f2f;stroke-dasharray:5 3}.v{stroke:#fff;stroke-width:.6}.v:hover{stroke:#1b1f27;stroke-width:1.6}\n")
	for _, k := range kinds {
		c.printf(".%s{fill:%s}", k.class, k.light)
	}
	c.printf("\n@media (prefers-color-scheme:dark){text{fill:#9aa3b2}.head{fill:#eef1f6}.panel{fill:#cdd3de}.on{fill:#0b1017}\n" +
		".paper{fill:#14171c}.ground{fill:#1d2128}.grid{stroke:#2d333d}.edge{stroke:#4a5260}.v{stroke:#14171c}.v:hover{stroke:#fff}\n" +
		".peak{fill:#ff6b6b;fill-opacity:.16}.mark{fill:#ff8585}.bound{stroke:#ff8585}\n")
	for _, k := range kinds {
		c.printf(".%s{fill:%s}", k.class, k.dark)
	}
	c.printf("}\n</style>\n<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", width, height)
	c.text(marginLeft, 24, "head", "arena "+FormatBytes(c.ArenaBytes)+", arena / lower bound "+c.ratio())
	x := marginLeft
	for _, k := range kinds {
		c.rect(int64(100*x), 3600, 1000, 1000, k.class, "")
		c.text(x+15, 45, "", k.label)
		x += 15 + 6*len(k.label) + 24
	}
}

// drawCurve draws how many bytes of the arena are live over time.
func (c *canvas) drawCurve(top int) {
	c.text(marginLeft, top-6, "panel", "live bytes of the arena")
	bottom := int64(100 * (top + curveHeight))
	c.rect(100*marginLeft, int64(100*top), int64(100*c.plot), 100*curveHeight, "ground", "")
	c.printf("<path class=\"curve\" d=\"M%s %s", px(c.x(0)), px(bottom))
	for _, l := range c.LiveBytes() {
		c.printf("H%sV%s", px(c.x(l.At)), px(bottom-scale(l.Bytes, c.ArenaBytes, curveHeight)))
	}
	c.printf("H%sV%sZ\"/>\n", px(c.x(c.times)), px(bottom))
	c.text(marginLeft-8, top+9, "right", FormatBytes(c.ArenaBytes))
	c.text(marginLeft-8, top+curveHeight, "right", "0")
}

// LiveBytes returns how many bytes of the arena values take, level by level in
// time. Bytes that several values hold count once, and a value with strides
// counts with its extent.
func (p *Plan) LiveBytes() []LiveStep {
	arena := Storage{Name: "arena", Size: p.ArenaBytes}
	for _, v := range p.Values {
		if v.Space == SpaceArena {
			arena.Pieces = append(arena.Pieces, Piece{Offset: v.Offset, Size: v.Extent(), Start: v.Start, End: v.End})
		}
	}
	problem := Problem{Storages: []Storage{arena}, Align: 1}
	return problem.LiveBytes()
}

func (c *canvas) drawArena(top int) {
	c.text(marginLeft, top-6, "panel", "arena: every value at its bytes, while it lives")
	c.rect(100*marginLeft, int64(100*top), int64(100*c.plot), 100*arenaHeight, "ground", "")
	const ticks = 4
	for i := range ticks + 1 {
		bytes := c.ArenaBytes / ticks * int64(i)
		if i == ticks {
			bytes = c.ArenaBytes
		}
		y := top + arenaHeight - arenaHeight*i/ticks
		c.printf("<path class=\"grid\" d=\"M%d %dh%d\"/>\n", marginLeft, y, c.plot)
		c.text(marginLeft-8, y+4, "right", FormatBytes(bytes))
	}
	// Long lives first: what lives inside them, such as the parts of a
	// concatenation, is drawn over them.
	var values []*Value
	for i := range c.Values {
		if v := &c.Values[i]; v.Space == SpaceArena && v.Size > 0 {
			values = append(values, v)
		}
	}
	slices.SortStableFunc(values, func(a, b *Value) int {
		return cmp.Or(-cmp.Compare(a.Extent(), b.Extent()), -cmp.Compare(a.End-a.Start, b.End-b.Start))
	})
	bottom := int64(100 * (top + arenaHeight))
	for _, v := range values {
		class := c.kind[v.Name]
		if class == "" {
			class = "fresh"
		}
		low, high := scale(v.Offset, c.ArenaBytes, arenaHeight), scale(v.Offset+v.Extent(), c.ArenaBytes, arenaHeight)
		x, width := c.x(v.Start), c.x(v.End)-c.x(v.Start)
		// Small values stay large enough to be seen and pointed at.
		height := max(high-low, 200)
		c.rect(x, max(bottom-low-height, int64(100*top)), width, height, "v "+class, c.hover(v))
	}
	for i, v := range values {
		low, high := scale(v.Offset, c.ArenaBytes, arenaHeight), scale(v.Offset+v.Extent(), c.ArenaBytes, arenaHeight)
		x, width := c.x(v.Start), c.x(v.End)-c.x(v.Start)
		room := int(width/100/labelSize) - 1
		readable := room >= min(utf8.RuneCountInString(v.Name), 8) && high-low >= 1300
		// A name is left out if a rectangle that is drawn later would hide it.
		if readable && !slices.ContainsFunc(values[i+1:], v.overlaps) {
			c.text(int(x/100)+4, int(bottom-(high+low)/2)/100+4, "on", clip(v.Name, room))
		}
	}
	if c.LowerBoundBytes < c.ArenaBytes {
		y := bottom - scale(c.LowerBoundBytes, c.ArenaBytes, arenaHeight)
		c.printf("<path class=\"bound\" d=\"M%d %sh%d\"><title>lower bound %s</title></path>\n", marginLeft, px(y), c.plot,
			FormatBytes(c.LowerBoundBytes))
	}
}

// overlaps reports whether the extents of v and w share bytes at some time.
func (v *Value) overlaps(w *Value) bool {
	return v.Start < w.End && w.Start < v.End && v.Offset < w.Offset+w.Extent() && w.Offset < v.Offset+v.Extent()
}

// clip shortens a name to room letters.
func clip(name string, room int) string {
	if utf8.RuneCountInString(name) <= room {
		return name
	}
	return string([]rune(name)[:room-1]) + "…"
}

// hover returns the text of the picture for a value under the pointer.
func (c *canvas) hover(v *Value) string {
	text := fmt.Sprintf("%s: %s\n%s (%d bytes)\n%s %s", v.Name, v.Type, FormatBytes(v.Size), v.Size, v.Space, v.life())
	if of := c.of[v.Name]; of != "" {
		text += "\nin the bytes of " + of
	}
	if k := int(v.Start / 2); k < len(c.Steps) && v.Start%2 == 1 {
		text += "\nwritten by " + c.Steps[k].Where()
	}
	return text
}

// lanes returns the inputs and outputs that live at some time, inputs first.
func (c *canvas) lanes() []*Value {
	var lanes []*Value
	for i := range c.Values {
		if v := &c.Values[i]; (v.Space == SpaceInput || v.Space == SpaceOutput) && v.Start < v.End {
			lanes = append(lanes, v)
		}
	}
	slices.SortStableFunc(lanes, func(a, b *Value) int { return cmp.Compare(a.Space, b.Space) })
	return lanes
}

func (c *canvas) drawLanes(top int, lanes []*Value) {
	if len(lanes) == 0 {
		return
	}
	c.text(marginLeft, top-6, "panel", "inputs and outputs: "+FormatBytes(c.IOBytes)+", a line each, not to scale")
	c.rect(100*marginLeft, int64(100*top), int64(100*c.plot), int64(100*laneHeight*len(lanes)), "ground", "")
	for i, v := range lanes {
		y := top + i*laneHeight
		c.rect(c.x(v.Start), int64(100*y+100), c.x(v.End)-c.x(v.Start), 100*laneHeight-200, "v "+string(v.Space), c.hover(v))
		c.text(marginLeft-8, y+laneHeight-2, "right", clip(v.Name, 12))
	}
}

func (c *canvas) drawScratch(top int) {
	if c.ScratchBytes == 0 {
		return
	}
	c.text(marginLeft, top-6, "panel", fmt.Sprintf("scratch: %s × %s, of which each step uses", plural(c.Threads, "thread"),
		FormatBytes(c.ScratchPerThread)))
	c.rect(100*marginLeft, int64(100*top), int64(100*c.plot), 100*scratchSize, "ground", "")
	for i, s := range c.Steps {
		if s.Scratch > 0 {
			x, height := c.x(Time(2*i)), scale(s.Scratch, c.ScratchPerThread, scratchSize)
			c.rect(x, int64(100*(top+scratchSize))-height, c.x(Time(2*i+2))-x, height, "v scratch",
				fmt.Sprintf("step %d: %s\nscratch %s per thread", i, s.Where(), FormatBytes(s.Scratch)))
		}
	}
	c.text(marginLeft-8, top+9, "right", FormatBytes(c.ScratchPerThread))
}

// drawPeak marks the step at which the most bytes are live, from the curve
// down.
func (c *canvas) drawPeak(top, bottom int) {
	if len(c.Steps) == 0 {
		return
	}
	left, right := c.x(Time(2*c.Peak.Step)), c.x(Time(2*c.Peak.Step+2))
	width := max(right-left, 200)
	label := fmt.Sprintf("peak: %s at step %d, %s", FormatBytes(c.Peak.Bytes), c.Peak.Step, c.Steps[c.Peak.Step].Where())
	c.printf("<g pointer-events=\"none\">")
	c.rect(left, int64(100*top), width, int64(100*(bottom-top)), "peak", "")
	c.printf("</g>\n")
	c.text(marginLeft+c.plot, top-6, "mark right", clip(label, 110))
}

// drawAxis numbers the steps.
func (c *canvas) drawAxis(top int) {
	c.printf("<path class=\"edge\" d=\"M%d %dh%d\"/>\n", marginLeft, top, c.plot)
	every := 1
	for _, n := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000} {
		if every = n; c.plot*n >= 40*(len(c.Steps)+1) {
			break
		}
	}
	for i := 0; i < len(c.Steps); i += every {
		c.text(int(c.x(Time(2*i+1))/100), top+15, "mid", fmt.Sprint(i))
	}
	c.text(marginLeft+c.plot/2, top+31, "mid", "step")
}
