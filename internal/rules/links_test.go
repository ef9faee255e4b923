package rules_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	code    = regexp.MustCompile("`[^`\n]*`")
)

// anchor is how GitHub names a heading in links.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func anchors(page string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		list = append(list, anchor(m[1]))
	}
	return list
}

// TestLinks: every link from one page of the project to another leads
// somewhere, and RATIONALE's list of contents has every question.
func TestLinks(t *testing.T) {
	links := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != "." && d.Name()[0] == '.' {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "code"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if fault := broken(path, string(text), m[1]); fault != "" {
				t.Errorf("%s: link %s: %s", path, m[1], fault)
			}
		}
		return nil
	})
	if err != nil || links < 50 {
		t.Fatalf("got %d links, error %v, want those of all pages", links, err)
	}
	text, err := os.ReadFile("RATIONALE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range anchors(string(text))[2:] { // behind the title and the contents
		if !strings.Contains(string(text), "](#"+a+")") {
			t.Errorf("RATIONALE.md: the contents do not have #%s", a)
		}
	}
}

// broken returns the fault of a link of a page, "" if there is none.
func broken(page, text, to string) string {
	file, fragment, _ := strings.Cut(to, "#")
	if file != "" {
		target := filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
		info, err := os.Stat(target)
		if err != nil {
			return err.Error()
		}
		if fragment == "" || info.IsDir() || filepath.Ext(file) != ".md" {
			return ""
		}
		data, err := os.ReadFile(target)
		if err != nil {
			return err.Error()
		}
		text = string(data)
	}
	if !slices.Contains(anchors(text), fragment) {
		return "got no heading with this name"
	}
	return ""
}

func TestLinksBreak(t *testing.T) {
	const text = "# A page: its `name`\n\n```\n# no heading\n```\n"
	for to, ok := range map[string]bool{"#a-page-its-name": true, "#no-heading": false, "#other": false, "README.md": true, "none.md": false, "RATIONALE.md#ownership": true, "RATIONALE.md#none": false} {
		if fault := broken("page.md", text, to); (fault == "") != ok {
			t.Errorf("%s: got %q", to, fault)
		}
	}
}
