package plan

import (
	"bytes"
	"fmt"
	"io"
)

const (
	lineHeight = 220
	lineWidth  = 720
	lineGap    = 84
)

// WriteSVG draws the bytes of a run against each dimension: arena, scratch, and
// inputs and outputs on top of each other, with a mark at each breakpoint.
// Hovering names what holds from there on.
func (f *Formulas) WriteSVG(w io.Writer) error {
	var out bytes.Buffer
	width, height := marginLeft+lineWidth+marginRight, 40+len(f.Lines)*(lineHeight+lineGap)
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	out.WriteString("<title>bytes of a run by size</title>\n<style>\n" +
		"text{font:11px system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;fill:#5a6170}.head{font-weight:600;fill:#1b1f27}.right{text-anchor:end}\n" +
		".paper{fill:#fff}.ground{fill:#f3f5f8}.arena{fill:#4c78c8}.scratch{fill:#8a8f98}.io{fill:#d08a1d}.break{stroke:#c22f2f;stroke-dasharray:5 3}\n" +
		"@media (prefers-color-scheme:dark){text{fill:#9aa3b2}.head{fill:#eef1f6}.paper{fill:#14171c}.ground{fill:#1d2128}.arena{fill:#5b8be0}.scratch{fill:#7d838d}.io{fill:#e0a040}.break{stroke:#ff8585}}\n" +
		"</style>\n")
	fmt.Fprintf(&out, "<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", width, height)
	for i, label := range []string{"arena", "scratch", "inputs and outputs"} {
		x := marginLeft + 130*i
		fmt.Fprintf(&out, "<rect x=\"%d\" y=\"12\" width=\"10\" height=\"10\" class=\"%s\"/><text x=\"%d\" y=\"21\">%s</text>\n", x, []string{"arena", "scratch", "io"}[i], x+15, label)
	}
	for i := range f.Lines {
		f.Lines[i].draw(&out, 60+i*(lineHeight+lineGap))
	}
	out.WriteString("</svg>\n")
	_, err := w.Write(out.Bytes())
	return err
}

// draw draws the points of a line below top.
func (l *Line) draw(out *bytes.Buffer, top int) {
	title := l.Dim
	if l.Others != "" {
		title += ", with " + l.Others
	}
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"head\">bytes of a run along %s</text>\n", marginLeft, top-8, escape(title))
	fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"ground\"/>\n", marginLeft, top, lineWidth, lineHeight)
	if len(l.Points) == 0 {
		return
	}
	first, last, most := l.Points[0].Size, l.Points[len(l.Points)-1].Size, int64(1)
	for _, p := range l.Points {
		most = max(most, p.PerRun)
	}
	x := func(size int) string {
		return px(100*marginLeft + 100*lineWidth*int64(size-first)/int64(max(last-first+1, 1)))
	}
	y := func(bytes int64) string { return px(int64(100*(top+lineHeight)) - scale(bytes, most, lineHeight)) }
	// From the back: all of a run, then without inputs and outputs, then the
	// arena.
	for _, layer := range []struct {
		class string
		bytes func(p *FiguresAt) int64
	}{
		{"io", func(p *FiguresAt) int64 { return p.PerRun }},
		{"scratch", func(p *FiguresAt) int64 { return p.PerRun - p.IO }},
		{"arena", func(p *FiguresAt) int64 { return p.Arena }},
	} {
		fmt.Fprintf(out, "<path class=\"%s\" d=\"M%s %d", layer.class, x(first), top+lineHeight)
		for i := range l.Points {
			p := &l.Points[i]
			next := last + 1
			if i+1 < len(l.Points) {
				next = l.Points[i+1].Size
			}
			fmt.Fprintf(out, "V%sH%s", y(layer.bytes(p)), x(next))
		}
		fmt.Fprintf(out, "V%dZ\"/>\n", top+lineHeight)
	}
	for _, b := range l.Breakpoints {
		fmt.Fprintf(out, "<path class=\"break\" d=\"M%s %dv%d\"><title>from %d: %s</title></path>\n", x(b.Size), top, lineHeight, b.Size, escape(b.What))
	}
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"right\">%s</text>\n", marginLeft-8, top+9, FormatBytes(most))
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"right\">0</text>\n", marginLeft-8, top+lineHeight)
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\">%d</text>\n", marginLeft, top+lineHeight+16, first)
	fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"right\">%d</text>\n", marginLeft+lineWidth, top+lineHeight+16, last)
}
