package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/python/pythontest"
)

var update = flag.Bool("update", false, "write testdata/want.json with the reference")

// noon is the time that strftime_now tells in tests.
var noon = time.Date(2024, 7, 4, 15, 6, 9, 0, time.UTC)

// templates returns those of testdata, with their names: files, and snippets.
// A line of snippets that begins with a space, or with a brace and a minus
// behind one, goes on with the one before.
func templates(t testing.TB) (names, texts []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jinja")
	if err != nil || len(files) == 0 {
		t.Fatal("no templates: ", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		names, texts = append(names, f), append(texts, string(text))
	}
	text, err := os.ReadFile("testdata/snippets.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n%%\n") {
		names, texts = append(names, part), append(texts, part)
	}
	return names, texts
}

// variables returns those of the texts, in JSON.
func variables(t testing.TB) (list []map[string]json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile("testdata/cases.json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// reference renders templates in Python.
func reference(t testing.TB, python string, texts []string, vars []map[string]json.RawMessage) (answers [][]*string) {
	t.Helper()
	asked, err := json.Marshal(map[string]any{"templates": texts, "cases": vars})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/reference.py")
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8")
	cmd.Stdin = bytes.NewReader(asked)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &answers)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, faults.String())
	}
	return answers
}

// render renders one template with one case; nil where it is refused.
func render(t testing.TB, text string, vars map[string]json.RawMessage) (*string, error) {
	t.Helper()
	template, err := Parse(text)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for name, raw := range vars {
		if values[name], err = FromJSON(raw); err != nil {
			t.Fatal(err)
		}
	}
	out, err := template.RenderAt(values, noon)
	var fault *Error
	if err != nil && !errors.As(err, &fault) {
		t.Fatalf("got the error %v, want an *Error", err)
	}
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func compare(t testing.TB, name, text string, vars map[string]json.RawMessage, want *string) {
	t.Helper()
	got, err := render(t, text, vars)
	switch {
	case want == nil && got != nil:
		t.Errorf("%s: got %q, want it refused", name, *got)
	case want != nil && got == nil:
		t.Errorf("%s: got error %v, want %q", name, err, *want)
	case want != nil && *got != *want:
		t.Errorf("%s: got  %q\nwant %q", name, *got, *want)
	}
}

// TestGolden compares with texts that the reference has rendered.
func TestGolden(t *testing.T) {
	names, texts := templates(t)
	vars := variables(t)
	const file = "testdata/want.json"
	if *update {
		answers := reference(t, pythontest.Interpreter(t, "jinja2"), texts, vars)
		text, err := json.MarshalIndent(answers, "", " ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want [][]*string
	if err := json.Unmarshal(text, &want); err != nil || len(want) != len(texts) {
		t.Fatalf("got %d templates in %s, want %d: run the test with -update (%v)", len(want), file, len(texts), err)
	}
	for i := range texts {
		for j := range vars {
			compare(t, names[i], texts[i], vars[j], want[i][j])
		}
	}
}

// TestReference compares with the reference as it is installed.
func TestReference(t *testing.T) {
	names, texts := templates(t)
	vars := variables(t)
	for i, answers := range reference(t, pythontest.Interpreter(t, "jinja2"), texts, vars) {
		for j, want := range answers {
			compare(t, names[i], texts[i], vars[j], want)
		}
	}
}

// TestRefused wants errors that say what is wrong, and where.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{% include 'x' %}":          "line 1: got the statement include, which is not supported",
		"a\n{{ x | nope }}":          "line 2: got the filter nope, which is not supported",
		"{{ x is nope }}":            "line 1: got the test nope, which is not supported",
		"{% for x in y %}":           "line 1: got the end of the template, want endfor",
		"{{ 1 ":                      "line 1: got a tag without an end, want }}",
		"{{ 'a }}":                   "line 1: got a string without an end",
		"{# x":                       "got a comment without an end",
		"{% raw %}x":                 "got raw without endraw",
		"{% break %}":                "got break outside a loop",
		"{{ ? }}":                    `got the character '?' in an expression`,
		"{{ 1 2 }}":                  "got 2, which is not expected here",
		"{{ f(a=1, 2) }}":            "got an argument by place behind one by name",
		"{% endif %}":                "got the statement endif",
		"{{ \xff }}":                 "no UTF-8",
		"{{ 99999999999999999999 }}": "want one of 64 bits",
		"{{ " + strings.Repeat("(", 500) + strings.Repeat(")", 500) + " }}": "got more than 100 levels",
		strings.Repeat("{% if 1 %}", 200):                                   "got more than 100 levels",
		"{{ x.y }}":                                                         "line 1: got .y of an undefined value: x is not defined",
		"\n\n{{ 1 + 'a' }}":                                                 "line 3: got a number + a text, want two numbers",
		"{{ raise_exception('no: ' ~ 1) }}":                                 "no: 1",
		"{% for i in range(10000000) %}{% endfor %}":                        "elements, want at most",
		"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}": "steps",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}":                                  "call each other more than 100 deep",
		"{{ 'abcdefgh' * 100000000 }}":                                                     "too long",
		"{{ [0] * 100000000 }}":                                                            "too long",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}":     "bytes, want at most",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}":     "bytes, want at most",
		"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}":            "elements, want at most",
		"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}": "steps",
		"{% for i in range(1000) %}{{ 'a' * 100000 }}{% endfor %}":                                                   "bytes, want at most",
	} {
		got, err := render(t, text, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v and error %v, want %q", text, got, err, want)
		}
	}
	var fault *Error
	if _, err := render(t, "{{ raise_exception('x') }}", nil); !errors.As(err, &fault) || !fault.Raised {
		t.Errorf("got %v, want an error that the template raised", err)
	}
}

func TestFromJSON(t *testing.T) {
	v, err := FromJSON([]byte(`{"b":[1,1.5,1e400000],"a":null}`))
	if err == nil {
		t.Errorf("got %v, want an error for a number out of range", v)
	}
	for _, bad := range []string{``, `{`, `[1`, `1 2`, `{"a"}`, strings.Repeat("[", 300)} {
		if _, err := FromJSON([]byte(bad)); err == nil {
			t.Errorf("%.20q: got no error", bad)
		}
	}
	v, err = FromJSON([]byte(`{"b":1,"a":2,"b":3}`))
	if m, ok := v.(*Map); err != nil || !ok || !slices.Equal(m.keys, []any{"b", "a"}) {
		t.Errorf("got %v, %v, want a mapping in order", v, err)
	}
}

// FuzzRender wants errors, and no panic, for whatever a template is.
func FuzzRender(f *testing.F) {
	_, texts := templates(f)
	for _, text := range texts {
		f.Add(text)
	}
	messages, err := FromJSON([]byte(`[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"x"}]}]`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		template, err := Parse(text)
		if err != nil {
			return
		}
		_, _ = template.Render(map[string]any{"messages": messages, "x": int64(3)})
	})
}
