package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"

	"github.com/tenure-go/tenure/plan"
)

// Write writes the page of p to w, all of it or nothing. The error is a
// [plan.ErrDocument] if p contradicts itself, or that of w. A browser computes
// with numbers of 53 bits: byte counts above 9 PB are shown rounded.
func Write(w io.Writer, p *plan.Plan) error {
	var report, out bytes.Buffer
	if err := p.Report(&report); err != nil {
		return err
	}
	parts := parts()
	err := parts.page.Execute(&out, struct {
		Plan                  *plan.Plan
		Report                string
		Style                 template.CSS
		Script                template.JS
		StyleHash, ScriptHash string
	}{p, report.String(), parts.style, parts.script, hashOf(string(parts.style)), hashOf(string(parts.script))})
	if err != nil {
		return fmt.Errorf("plan: page: %w", err)
	}
	_, err = w.Write(out.Bytes())
	return err
}

//go:embed page.tmpl page.css *.js
var files embed.FS

// parts returns what all pages have in common. It is read when the first page
// is written.
var parts = sync.OnceValue(func() (p struct {
	page   *template.Template
	style  template.CSS
	script template.JS
}) {
	file := func(name string) string {
		text, err := files.ReadFile(name)
		if err != nil {
			panic("BUG: plan: page: " + err.Error())
		}
		return string(text)
	}
	p.page = template.Must(template.New("page").Parse(file("page.tmpl")))
	p.style = template.CSS(file("page.css"))
	// Each part of the script uses those before it.
	p.script = template.JS(file("data.js") + file("draw.js") + file("table.js") + file("view.js") + file("summary.js") + file("input.js") + file("start.js"))
	return p
})

// hashOf is the source expression of a content security policy that allows one
// text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
