// Package jinja renders the templates by which language models say how a chat
// becomes text: those of Jinja 2 in Python, with the settings and additions of
// the library that most models come from (blocks are trimmed; break, continue,
// generation, tojson, raise_exception, strftime_now).
//
//	t, err := jinja.Parse(text)
//	messages, err := jinja.FromJSON(raw)
//	prompt, err := t.Render(map[string]any{"messages": messages, "add_generation_prompt": true})
//
// A template gives the same text as in Python, or an error: a prompt that
// differs from those that a model was trained on makes its answers worse
// without one. What a template uses and this package lacks (include, extends,
// import, a filter, a test) is an error of [Parse], where it can be seen there.
//
// # Values
//
// Values are nil, bool, int64, float64, string, [*List] and [*Map], which keeps
// the order of its keys. [FromJSON] makes them of a text.
//
// # Limits
//
// A template is data that came with a model. A rendering that takes too many
// steps, goes too deep, or makes a text that is too long ends with an error.
//
// # Concurrency
//
// A [Template] may be used from any goroutine.
package jinja

import (
	"fmt"
	"strings"
	"time"
)

const (
	mostSteps = 5_000_000
	mostText  = 16 << 20 // bytes of any text that a template makes
	mostItems = 1 << 20  // of any list
	mostDepth = 100      // of macros that call each other, and of nested expressions
)

// Error is what is wrong with a template, or with what it was given.
type Error struct {
	Line    int
	Message string
	Raised  bool // the template itself raised it: it refuses what it was given
}

// Error returns "line 3: ...".
func (e *Error) Error() string {
	if e.Raised {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Template is a template that was read.
type Template struct{ body []node }

// Parse reads a template. The error is an [*Error].
func Parse(text string) (t *Template, err error) {
	defer rescue(&err)
	p := &parser{tokens: lex(text)}
	body := p.statements()
	if p.at().kind != end {
		p.unexpected()
	}
	return &Template{body}, nil
}

// Render returns the text of the template with these variables. The error is an
// [*Error].
func (t *Template) Render(vars map[string]any) (text string, err error) {
	return t.RenderAt(vars, time.Now())
}

// RenderAt is Render at a time that strftime_now tells.
func (t *Template) RenderAt(vars map[string]any, now time.Time) (text string, err error) {
	defer rescue(&err)
	globals := &scope{vars: map[string]any{}}
	r := &renderer{scope: &scope{vars: map[string]any{}, parent: globals}, out: &strings.Builder{}, now: now}
	for name, f := range functions {
		globals.vars[name] = f
	}
	for name, v := range vars {
		globals.vars[name] = v
	}
	r.statements(t.body)
	return r.out.String(), nil
}

// rescue makes an error of a failure. Parsing and rendering go deep, and an
// error anywhere ends them.
func rescue(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	default:
		panic(p)
	}
}

// fail ends parsing or rendering.
func fail(line int, format string, args ...any) {
	panic(&Error{Line: line, Message: fmt.Sprintf(format, args...)})
}
