// Package model holds a model of the lease protocol and has Spin explore it: the protocol as it is without a fault, and each
// known fault as one that is found. There is nothing in it to import.
package model

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var large = flag.Bool("large", false, "explore the large configurations too, which takes minutes and gigabytes")

// good is what must hold in every order of steps.
var good = []struct {
	name, defs string
	large      bool // millions of states: with -large only
}{
	{name: "offers", defs: ""},
	{name: "tickets", defs: "TICKET SERIALS=1"},
	{name: "arenas", defs: "RETIRE SERIALS=1"},
	{name: "poison", defs: "POISON"},
	{name: "releases twice", defs: "TWICE"},
	{name: "devices", defs: "DEVICE"},
	{name: "one consumer", defs: "CONSUMERS=1 CLOSE POISON RETIRE"},
	{name: "nobody dies", defs: "PEACE CLOSE SERIALS=1 QUEUE=1"},
	{name: "nobody dies, one consumer", defs: "PEACE CONSUMERS=1 CLOSE POISON RETIRE DEVICE"},

	{name: "more tickets", defs: "TICKET", large: true},
	{name: "more arenas", defs: "RETIRE", large: true},
	{name: "closing", defs: "CLOSE", large: true},
	{name: "one consumer, releases twice", defs: "CONSUMERS=1 CLOSE POISON RETIRE TWICE DEVICE", large: true},
	{name: "nobody dies, tickets", defs: "PEACE CLOSE TICKET SERIALS=1 QUEUE=1 WRITES=1", large: true},
	{name: "tickets and arenas", defs: "TICKET RETIRE QUEUE=1", large: true},
	{name: "tickets, two blocks", defs: "TICKET BLOCKS=2 WRITES=3 QUEUE=1", large: true},
}

// bad is what must not: each has one fault.
var bad = []struct{ fault, defs string }{
	{"SEND_FIRST", ""},
	{"NOLOCK", ""},
	{"COUNTER", ""},
	{"EARLY_REUSE", ""},
	{"NO_RECLAIM", ""},
	{"SERIAL_REUSE", "TWICE"},
	{"CREDIT_RACE", "TICKET"},
	{"SUBLEASE", "TICKET"},
	{"TICKET_NOREF", "TICKET"},
	{"TICKET_EATEN", "TICKET"},
	{"OWN_CLOSE", "CLOSE"},
	{"END_OVERTAKES", "CLOSE"},
	{"POISON_DROPS", "POISON"},
	{"SHUT_HOLDING", "POISON"},
	{"UNMAP_HELD", "RETIRE"},
	{"RETIRE_UNCOUNTED", "RETIRE"},
	{"ARENA_UNCOUNTED", "RETIRE"},
	{"RETIRE_OVERTAKES", "RETIRE"},
	{"DEVICE_EOF", "DEVICE"},
}

// tools are what a model is run with.
type tools struct{ spin, cc, source string }

func find(t *testing.T) tools {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: takes half a minute, and nothing of it is Go")
	}
	spin, err := exec.LookPath("spin")
	if err != nil {
		t.Skip("needs spin, which Debian has as a package: ", err)
	}
	names := []string{"gcc", "clang", "cc"}
	if cc := os.Getenv("CC"); cc != "" {
		names = []string{cc}
	}
	source, err := filepath.Abs("leases.pml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if cc, err := exec.LookPath(name); err == nil {
			return tools{spin, cc, source}
		}
	}
	t.Skip("needs a C compiler: found none of ", strings.Join(names, ", "))
	return tools{}
}

var counts = regexp.MustCompile(`errors: (\d+)\s+(\d+) states, stored`)

// explore runs the model with the definitions and returns how many states it
// has, and what went wrong in one of them.
func (c tools) explore(t *testing.T, defs []string) (states int, fault string) {
	t.Helper()
	dir := t.TempDir()
	run := func(name string, args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
		}
		return out
	}
	out := run(c.spin, append(defs, "-a", c.source)...)
	if _, err := os.Stat(filepath.Join(dir, "pan.c")); err != nil {
		t.Fatalf("spin made no verifier:\n%s", out)
	}
	run(c.cc, "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-DMEMLIM=16000", "-o", "pan", "pan.c")
	out = run(filepath.Join(dir, "pan"), "-m1000000", "-w24")
	m := counts.FindSubmatch(out)
	if m == nil || bytes.Contains(out, []byte("Search not completed")) && m[1][0] == '0' || bytes.Contains(out, []byte("max search depth")) {
		t.Fatalf("the search was not completed:\n%s", out)
	}
	states, _ = strconv.Atoi(string(m[2]))
	if string(m[1]) != "0" {
		first, _, _ := bytes.Cut(out[bytes.Index(out, []byte("pan:")):], []byte("\n"))
		fault = string(first)
	}
	return states, fault
}

func definitions(defs string) (list []string) {
	for _, d := range strings.Fields(defs) {
		list = append(list, "-D"+d)
	}
	return list
}

// TestProtocol wants no fault in any reachable state.
func TestProtocol(t *testing.T) {
	c := find(t)
	for _, g := range good {
		t.Run(g.name, func(t *testing.T) {
			if g.large && !*large {
				t.Skip("takes minutes and gigabytes: runs with -large")
			}
			t.Parallel()
			states, fault := c.explore(t, definitions(g.defs))
			if fault != "" {
				t.Errorf("%s: got %s after %d states, want no fault; to see the steps: spin %s -a leases.pml, build and run pan, spin -t -p %s leases.pml",
					g.defs, fault, states, strings.Join(definitions(g.defs), " "), strings.Join(definitions(g.defs), " "))
			}
			if states < 10000 {
				t.Errorf("%s: got %d states, want a model that can do something", g.defs, states)
			}
			t.Logf("%d states", states)
		})
	}
}

// TestFaults wants every fault to be found, by an assertion: a model that
// merely gets stuck proves nothing.
func TestFaults(t *testing.T) {
	c := find(t)
	for _, b := range bad {
		t.Run(b.fault, func(t *testing.T) {
			t.Parallel()
			states, fault := c.explore(t, definitions(b.defs+" M_"+b.fault))
			if !strings.Contains(fault, "assertion violated") {
				t.Errorf("got %q after %d states, want a violated assertion", fault, states)
			}
			t.Logf("%d states: %s", states, fault)
		})
	}
}

// TestFaultsAreKnown holds the table of faults to those in the model.
func TestFaultsAreKnown(t *testing.T) {
	text, err := os.ReadFile("leases.pml")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, b := range bad {
		listed[b.fault] = true
	}
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`\bM_([A-Z_]*[A-Z])\b`).FindAllSubmatch(text, -1) {
		found[string(m[1])] = true
		if !listed[string(m[1])] {
			t.Errorf("the model has a fault M_%s, want it in the table", m[1])
		}
	}
	for fault := range listed {
		if !found[fault] {
			t.Errorf("the table has a fault %s, want it in the model", fault)
		}
	}
}
