// Command tables writes the tables of the project's pages from the files in
// results.
//
//	go run ./tables          rewrites the tables between the markers of every page
//	go run ./tables -check   lists the pages whose tables differ, and fails if there is one
//
// A marker is a line
//
//	<!-- table: NAME -->
//
// in a Markdown file of the project; everything from there to the next line
// "<!-- end of table -->" is the table of that name (definitions.go), and under
// it the machine, the day, the versions and the command of each result that it
// was made from. The check also fails for a table of any page, rendered or not,
// that has a row with more or fewer cells than its header.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	check := flag.Bool("check", false, "change nothing: fail if something would change")
	flag.Parse()
	if err := run("..", *check); err != nil {
		log.Fatal(err)
	}
}

const (
	begin = "<!-- table: "
	end   = "<!-- end of table -->"
)

// run updates or checks the pages of the project in the folder root.
func run(root string, check bool) error {
	pages, err := pagesIn(root)
	if err != nil {
		return err
	}
	var faults []string
	used := map[string]bool{}
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		text, names, err := update(string(data), filepath.Join(root, "bench", "results"))
		if err != nil {
			return fmt.Errorf("%s: %w", page, err)
		}
		for _, name := range names {
			used[name] = true
		}
		for _, fault := range uneven(text) {
			faults = append(faults, page+": "+fault)
		}
		switch {
		case text == string(data):
		case check:
			faults = append(faults, fmt.Sprintf("%s: a table differs from its results: go run ./tables (in bench) rewrites it", page))
		default:
			if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
				return err
			}
		}
	}
	for _, t := range definitions {
		if !used[t.name] {
			faults = append(faults, fmt.Sprintf("table %s: got no page that shows it, want one", t.name))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	return nil
}

// pagesIn lists the Markdown files of the project.
func pagesIn(root string) (pages []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return nil
	})
	return pages, err
}

// update returns the text with its tables rendered anew, and their names.
func update(text, results string) (string, []string, error) {
	var out strings.Builder
	var names []string
	for {
		before, rest, found := cutLine(text, begin)
		out.WriteString(before)
		if !found {
			return out.String(), names, nil
		}
		marker, rest, _ := strings.Cut(rest, "\n")
		name, closed := strings.CutSuffix(strings.TrimPrefix(marker, begin), " -->")
		_, rest, ended := cutLine(rest, end)
		if !closed || !ended {
			return "", nil, fmt.Errorf("marker %q: got no %q after it", marker, end)
		}
		table, err := render(name, results)
		if err != nil {
			return "", nil, fmt.Errorf("table %s: %w", name, err)
		}
		names = append(names, name)
		fmt.Fprintf(&out, "%s\n\n%s\n", marker, table)
		text = rest // begins with the end
		out.WriteString(end)
		text = strings.TrimPrefix(text, end)
	}
}

// cutLine cuts the text before the first line that begins so.
func cutLine(text, begins string) (before, rest string, found bool) {
	if strings.HasPrefix(text, begins) {
		return "", text, true
	}
	i := strings.Index(text, "\n"+begins)
	if i < 0 {
		return text, "", false
	}
	return text[:i+1], text[i+1:], true
}

// uneven names the rows of a page's tables that have another number of cells
// than their header.
func uneven(text string) (faults []string) {
	header, fenced := 0, false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || !strings.HasPrefix(line, "|") {
			header = 0
			continue
		}
		n := cells(line)
		if header == 0 {
			header = n
		}
		if n != header {
			faults = append(faults, fmt.Sprintf("line %d: got a row of %d cells, want %d as in the header", i+1, n, header))
		}
	}
	return faults
}

// cells counts the cells of a line. A bar within code, or behind a backslash,
// is text.
func cells(line string) (n int) {
	code := false
	line = strings.TrimSuffix(strings.TrimSpace(line), "|")
	for i, c := range line {
		switch {
		case c == '`':
			code = !code
		case c == '|' && !code && (i == 0 || line[i-1] != '\\'):
			n++
		}
	}
	return n
}
