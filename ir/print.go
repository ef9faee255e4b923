package ir

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// broken is printed for every part that a malformed program lacks.
const broken = "??"

// String returns the text form of the program. Malformed programs print too.
func (p *Program) String() string {
	if p == nil || p.Body == nil {
		return broken + "\n"
	}
	w := &printer{open: map[*Block]bool{}}
	w.text("func @", quoteName(p.Name))
	w.params(p.Body.Params)
	if len(p.Body.Results) > 0 {
		w.text(" -> (")
		for i, v := range p.Body.Results {
			w.comma(i)
			w.text(typeText(v))
		}
		w.text(")")
	}
	w.text(" {\n")
	w.depth = 1
	for _, v := range p.Weights {
		w.indent()
		w.text("weight ", v.String(), ": ", typeText(v), "\n")
	}
	w.body(p.Body)
	w.text("}\n")
	return w.b.String()
}

// Hash returns the SHA-256 of the text form in hexadecimal: equal programs
// have equal hashes, on any machine.
func (p *Program) Hash() string {
	sum := sha256.Sum256([]byte(p.String()))
	return hex.EncodeToString(sum[:])
}

// written returns the value that result i replaces the elements of, nil for
// none.
func (c *Call) written(i int) *Value {
	if i < len(c.Writes) {
		return c.Writes[i]
	}
	return nil
}

// String returns the call on one line, without types and without the contents
// of its regions.
func (c *Call) String() string {
	w := &printer{}
	w.call(c, false)
	return w.b.String()
}

type printer struct {
	b     strings.Builder
	depth int
	open  map[*Block]bool // blocks being printed: one inside itself ends here
}

func (w *printer) text(parts ...string) {
	for _, s := range parts {
		w.b.WriteString(s)
	}
}

func (w *printer) comma(i int) {
	if i > 0 {
		w.b.WriteString(", ")
	}
}

func (w *printer) indent() {
	for range w.depth {
		w.b.WriteString("  ")
	}
}

func (w *printer) params(params []*Value) {
	w.text("(")
	for i, v := range params {
		w.comma(i)
		if v != nil && v.Donated {
			w.text("donate ")
		}
		w.text(valueText(v), ": ", typeText(v))
	}
	w.text(")")
}

func (w *printer) body(b *Block) {
	for _, c := range b.Calls {
		w.indent()
		w.call(c, true)
		w.text("\n")
	}
	w.indent()
	w.text("return")
	for i, v := range b.Results {
		w.text([]string{" ", ", "}[min(i, 1)], valueText(v))
	}
	w.text("\n")
}

func (w *printer) call(c *Call, full bool) {
	if c == nil {
		w.text(broken)
		return
	}
	for i, v := range c.Results {
		w.comma(i)
		if target := c.written(i); target != nil {
			w.text("write ", target.String())
			continue
		}
		w.text(v.String())
		if full && v != nil {
			w.text(": ", typeText(v))
		}
	}
	if len(c.Results) > 0 {
		w.text(" = ")
	}
	if c.Op == nil {
		w.text(broken)
	} else {
		w.text(quoteName(c.Op.Name))
	}
	w.text("(")
	for i, a := range c.Args {
		w.comma(i)
		if a.Donate {
			w.text("donate ")
		}
		if a.View {
			w.text("view ")
		}
		w.text(a.Value.String())
	}
	w.text(")")
	for _, r := range c.Regions {
		w.region(r, full)
	}
	for i, a := range c.Attrs {
		w.text([]string{" {", ", "}[min(i, 1)], quoteName(a.Name), " = ", attrText(a.Value))
	}
	if len(c.Attrs) > 0 {
		w.text("}")
	}
	if c.Node != "" && full {
		w.text(" ", strconv.Quote(c.Node))
	}
}

func (w *printer) region(b *Block, full bool) {
	if !full {
		w.text(" {...}")
		return
	}
	if b == nil || w.open[b] {
		w.text(" {", broken, "}")
		return
	}
	w.open[b] = true
	if len(b.Params) > 0 {
		w.text(" ")
		w.params(b.Params)
	}
	w.text(" {\n")
	w.depth++
	w.body(b)
	w.depth--
	w.indent()
	w.text("}")
	delete(w.open, b)
}

// valueText differs from Value.String where a value must stand.
func valueText(v *Value) string {
	if v == nil {
		return broken
	}
	return v.String()
}

func typeText(v *Value) string {
	if v == nil || !v.Type.DType.IsValid() {
		return broken
	}
	return v.Type.String()
}

func attrText(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case string:
		return strconv.Quote(v)
	case dtype.DType:
		if v.IsValid() {
			return v.String()
		}
	case []int64:
		return listText(v, func(n int64) string { return strconv.FormatInt(n, 10) })
	case []float64:
		return listText(v, floatText)
	case []string:
		return listText(v, strconv.Quote)
	}
	return broken
}

func listText[T any](list []T, text func(T) string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = text(x)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// floatText writes the shortest text that reads back as the same number and
// does not look like an integer.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+"))
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func isWordByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWord(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// isOpName reports whether the text form allows an operator of that name.
func isOpName(s string) bool {
	switch s {
	case "func", "weight", "return", "donate", "_":
		return false
	}
	return isWord(s)
}

func quoteName(s string) string {
	if isWord(s) {
		return s
	}
	return strconv.Quote(s)
}
