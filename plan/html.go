package plan

import (
	"bytes"
	"io"
)

// WriteHTML writes a page that needs nothing else: the report's tables, and the drawing with what is under the pointer.
func (p *Plan) WriteHTML(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString(pageHead)
	out.WriteString("<h1>Memory plan</h1>\n<p class=\"subject\">" + escape(p.subject()) + "</p>\n<div class=\"figures\">\n")
	for _, f := range p.figures() {
		out.WriteString("<div class=\"figure\"><span>" + escape(f.label) + "</span><b>" + escape(FormatBytes(f.bytes)) + "</b><small>" +
			escape(f.note) + "</small></div>\n")
	}
	out.WriteString("</div>\n<p>arena / lower bound = " + escape(p.ratio()) + "</p>\n<div class=\"drawing\">\n")
	out.Write(p.drawing())
	out.WriteString("</div>\n")
	for _, t := range p.tables() {
		t.writeHTML(&out)
	}
	out.WriteString("<p class=\"subject\">model " + escape(p.Model) + "</p>\n" + pageTail)
	_, err := w.Write(out.Bytes())
	return err
}

func (t *table) writeHTML(out *bytes.Buffer) {
	out.WriteString("<h2>" + escape(t.title) + "</h2>\n<div class=\"list\"><table>\n<tr>")
	for _, name := range t.columns {
		out.WriteString("<th>" + escape(name) + "</th>")
	}
	out.WriteString("</tr>\n")
	for _, row := range t.rows {
		out.WriteString("<tr>")
		for _, cell := range row {
			out.WriteString("<td>" + escape(cell) + "</td>")
		}
		out.WriteString("</tr>\n")
	}
	out.WriteString("</table></div>\n")
	if t.more != "" {
		out.WriteString("<p class=\"subject\">" + escape(t.more) + "</p>\n")
	}
}

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Memory plan</title>
<style>
body{margin:0 auto;max-width:1760px;padding:28px 32px;font:14px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;background:#fff;color:#1b1f27}
h1{font-size:22px;margin:0}h2{font-size:15px;margin:28px 0 8px}
.subject{color:#5a6170;margin:4px 0 18px;overflow-wrap:anywhere}
.figures{display:flex;flex-wrap:wrap;gap:12px}
.figure{border:1px solid #d9dde4;border-radius:8px;padding:10px 16px;min-width:130px}
.figure span,.figure small{display:block;color:#5a6170;font-size:12px}.figure b{font-size:19px;font-weight:600}
.drawing{overflow-x:auto;border:1px solid #d9dde4;border-radius:8px;margin:18px 0}.drawing svg{display:block;margin:auto;width:100%;height:auto;min-width:860px;max-width:1708px}
.list{overflow-x:auto}table{border-collapse:collapse;font-size:13px}
th,td{text-align:left;padding:4px 18px 4px 0;border-bottom:1px solid #e7eaef}th{color:#5a6170;font-weight:600}
td:first-child,th:first-child{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
#under{position:fixed;z-index:1;pointer-events:none;white-space:pre;font-size:12px;line-height:1.45;background:#1b1f27;color:#f3f5f8;
padding:8px 11px;border-radius:6px;max-width:60vw;overflow:hidden}
@media (prefers-color-scheme:dark){body{background:#14171c;color:#eef1f6}.subject,.figure span,.figure small,th{color:#9aa3b2}
.figure,.drawing{border-color:#2d333d}th,td{border-color:#262b34}#under{background:#eef1f6;color:#14171c}}
</style>
</head>
<body>
`

// The script shows the title of what is under the pointer at once, where a browser alone would wait a second. Without it
// the titles remain.
const pageTail = `<div id="under" hidden></div>
<script>
(function () {
  const box = document.getElementById("under");
  for (const shape of document.querySelectorAll("svg .v")) {
    const title = shape.querySelector("title");
    if (!title) continue;
    const text = title.textContent;
    shape.setAttribute("aria-label", text);
    title.remove();
    shape.addEventListener("mousemove", function (e) {
      box.textContent = text;
      box.hidden = false;
      box.style.left = Math.max(0, Math.min(e.clientX + 14, innerWidth - box.offsetWidth - 8)) + "px";
      box.style.top = Math.max(0, Math.min(e.clientY + 14, innerHeight - box.offsetHeight - 8)) + "px";
    });
    shape.addEventListener("mouseleave", function () { box.hidden = true; });
  }
})();
</script>
</body>
</html>
`
