// Command excuse reads the output of go test -json and fails if a test failed,
// but for those that wine fails: it cannot remove the temporary folders of
// tests ("Invalid function"), which the testing package reports when the test
// itself is over.
//
//	GOOS=windows go test -json -exec wine ./... | go run .ci/excuse.go
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

type event struct{ Action, Package, Test, Output string }

var (
	message = regexp.MustCompile(`^\s*\S+\.go:\d+: `)
	skip    = regexp.MustCompile(`no symbolic links here|this system replaces no mapped file`) // said before a skip, which then ends as a failure too
	cleanup = regexp.MustCompile(`TempDir RemoveAll cleanup: .*: Invalid function\.$`)
)

// verdict is the outcome of a test, or of a package if the test's name is
// empty.
type verdict struct {
	lines   []string
	cleanup bool // the removal of its folder failed
	faults  bool // it said something else
}

func main() {
	seen := map[string]*verdict{}
	var failed []event
	passed, excused := 0, 0
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			os.Exit(1)
		}
		key := e.Package + " " + e.Test
		v := seen[key]
		if v == nil {
			v = &verdict{}
			seen[key] = v
		}
		switch e.Action {
		case "output", "build-output":
			v.hear(strings.TrimRight(e.Output, "\r\n"))
		case "build-fail":
			fmt.Println("the build failed:", e.Package)
			os.Exit(1)
		case "fail":
			failed = append(failed, e)
		case "pass":
			if e.Test != "" {
				passed++
			}
		}
	}
	bad := false
	for _, e := range failed {
		v := seen[e.Package+" "+e.Test]
		inner := slices.ContainsFunc(failed, func(o event) bool {
			return o.Package == e.Package && o.Test != e.Test && (e.Test == "" || strings.HasPrefix(o.Test, e.Test+"/"))
		})
		if !v.faults && (v.cleanup || inner) {
			excused++
			continue
		}
		bad = true
		fmt.Printf("FAIL %s %s\n  %s\n", e.Package, e.Test, strings.Join(v.lines, "\n  "))
	}
	fmt.Printf("%d passed, %d excused\n", passed, excused)
	if bad || passed == 0 {
		os.Exit(1)
	}
}

func (v *verdict) hear(line string) {
	v.lines = append(v.lines, line)
	switch {
	case cleanup.MatchString(line):
		v.cleanup = true
	case skip.MatchString(line):
	case message.MatchString(line), strings.HasPrefix(line, "panic: "), strings.HasPrefix(line, "fatal error: "):
		v.faults = true
	}
}
