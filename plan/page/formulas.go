package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"sync"

	"github.com/tenure-go/tenure/plan"
)

// WriteFormulas writes a page of f to w, all of it or nothing: the picture of
// bytes against sizes, and the report. It has no script.
func WriteFormulas(w io.Writer, f *plan.Formulas) error {
	var report, picture, out bytes.Buffer
	if err := f.Report(&report); err != nil {
		return err
	}
	if err := f.WriteSVG(&picture); err != nil {
		return err
	}
	err := formulasPage().Execute(&out, struct {
		Picture template.HTML // of plan, which escapes the names in it
		Report  string
	}{template.HTML(picture.String()), report.String()})
	if err != nil {
		return fmt.Errorf("plan: page: %w", err)
	}
	_, err = w.Write(out.Bytes())
	return err
}

var formulasPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("formulas").Parse(`<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>bytes of a run by size</title>
<style>
:root{color-scheme:light dark}
body{margin:1.5rem;font:14px system-ui,sans-serif}
svg{max-width:100%;height:auto}
pre{overflow:auto}
</style>
{{.Picture}}
<pre>{{.Report}}</pre>
</html>
`))
})
