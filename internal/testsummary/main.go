// Command testsummary runs go test and says at the end how many tests passed,
// and which were skipped and why: go test itself says that of a passing package
// only with -v.
//
//	go run ./internal/testsummary [-short] [...] ./...
//
// All arguments are those of go test. A package prints one line when it ends;
// the whole output of failed ones follows. The exit status is that of go test.
// The reason of a skipped test names its requirements. The command owns no
// tensors and runs one process, whose output it reads as it comes.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("testsummary: ")
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		log.Fatal(err)
	}
	s := newSummary()
	if err := s.read(out, os.Stdout); err != nil {
		log.Print(err)
	}
	err = cmd.Wait()
	s.print(os.Stdout)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		log.Fatal(err)
	}
}

// event is one line of go test -json.
type event struct{ Action, Package, Test, Output string }

// summary collects the results of the tests so far.
type summary struct {
	output  map[string][]string // of each test and package that has not ended
	skipped map[string][]string // tests by the reason why they were skipped
	passed  int
	failed  int
}

func newSummary() *summary {
	return &summary{output: map[string][]string{}, skipped: map[string][]string{}}
}

// read follows go test and prints a line for each package, and the output of
// what fails.
func (s *summary) read(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // a message of go test itself
			continue
		}
		s.take(e, out)
	}
	return lines.Err()
}

func (s *summary) take(e event, out io.Writer) {
	key := e.Package + "\t" + e.Test
	switch e.Action {
	case "build-output":
		io.WriteString(out, e.Output)
	case "output":
		if e.Test == "" && (strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t")) {
			io.WriteString(out, e.Output)
			return
		}
		s.output[key] = append(s.output[key], e.Output)
	case "pass", "fail", "skip":
		lines := s.output[key]
		delete(s.output, key)
		if e.Action == "fail" {
			for _, line := range lines {
				io.WriteString(out, line)
			}
		}
		if e.Test == "" {
			return
		}
		switch e.Action {
		case "pass":
			s.passed++
		case "fail":
			s.failed++
		case "skip":
			why := reason(lines)
			s.skipped[why] = append(s.skipped[why], e.Package[strings.LastIndexByte(e.Package, '/')+1:]+"."+e.Test)
		}
	}
}

var place = regexp.MustCompile(`^\s*\S+\.go:\d+: (skipped: )?`)

// reason returns a test's message when it skipped.
func reason(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if at := place.FindString(line); at != "" {
			return strings.TrimSpace(line[len(at):])
		}
	}
	return "no reason given"
}

// print writes the totals, and the reasons with their tests, the one with the
// most first.
func (s *summary) print(out io.Writer) {
	total := 0
	for _, tests := range s.skipped {
		total += len(tests)
	}
	fmt.Fprintf(out, "\n%d tests passed, %d failed, %d were skipped\n", s.passed, s.failed, total)
	reasons := slices.SortedFunc(maps.Keys(s.skipped), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(s.skipped[b]), len(s.skipped[a])), cmp.Compare(a, b))
	})
	const named = 3
	for _, why := range reasons {
		tests := s.skipped[why]
		names := strings.Join(tests[:min(len(tests), named)], ", ")
		if len(tests) > named {
			names += ", ..."
		}
		fmt.Fprintf(out, "%5d skipped: %s (%s)\n", len(tests), why, names)
	}
}
