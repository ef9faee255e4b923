// Package model holds a model of the lease protocol and has Spin explore it:
// the protocol as it is without a fault, and each known fault as one that is
// found. There is nothing in it to import.
package model

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	small = flag.Bool("small", false, "explore all small configurations and faults, not only those that stand for others")
	large = flag.Bool("large", false, "explore the large configurations too, which takes minutes and gigabytes")
)

// good is what must hold in every order of steps.
var good = []struct {
	name, defs string
	small      bool   // one part alone, which another configuration has too: with -small or -large only
	large      bool   // millions of states: with -large only
	file       string // of the model; leases.pml if empty
}{
	{name: "offers", defs: ""},
	{name: "tickets", defs: "TICKET SERIALS=1"},
	{name: "arenas", defs: "RETIRE SERIALS=1", small: true},
	{name: "arenas taken back", defs: "RETIRE TAKEBACK CONSUMERS=1"},
	{name: "memory of other allocators", defs: "RETIRE LENT CLOSE CONSUMERS=1"},
	{name: "memory of other allocators, no deaths", defs: "PEACE RETIRE LENT CLOSE CONSUMERS=1", small: true},
	{name: "poison", defs: "POISON", small: true},
	{name: "releases twice", defs: "TWICE", small: true},
	{name: "devices", defs: "DEVICE", small: true},
	{name: "devices without a handle", defs: "DEVICE NOHANDLE SERIALS=1", small: true},
	{name: "events", defs: "DEVICE EVENTS SERIALS=1"},
	{name: "events, offers that wait", defs: "EVENTS COMPLETE SERIALS=1", small: true},
	{name: "quarantine", defs: "DISCONNECT SERIALS=1"},
	{name: "one consumer", defs: "CONSUMERS=1 CLOSE POISON RETIRE"},
	{name: "no deaths", defs: "PEACE CLOSE SERIALS=1 QUEUE=1", small: true},
	{name: "no deaths, one consumer", defs: "PEACE CONSUMERS=1 CLOSE POISON RETIRE DEVICE"},

	{name: "reading", defs: "", file: "reading.pml"},

	{name: "reading, signals", defs: "PACKETS=0 OTHERS=1", file: "reading.pml", large: true},
	{name: "more tickets", defs: "TICKET", large: true},
	{name: "more arenas", defs: "RETIRE", large: true},
	{name: "closing", defs: "CLOSE", large: true},
	{name: "more quarantine", defs: "DISCONNECT TICKET SERIALS=1 QUEUE=1", large: true},
	{name: "one consumer, releases twice", defs: "CONSUMERS=1 CLOSE POISON RETIRE TWICE DEVICE", large: true},
	{name: "no deaths, tickets", defs: "PEACE CLOSE TICKET SERIALS=1 QUEUE=1 WRITES=1", large: true},
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
	{"SAME_ID", "RETIRE TAKEBACK CONSUMERS=1"},
	{"LENT_EOF", "RETIRE LENT CLOSE CONSUMERS=1"},
	{"LENT_SHUT", "RETIRE LENT CLOSE CONSUMERS=1"},
	{"LENT_OPENS", "RETIRE LENT CLOSE CONSUMERS=1"},
	{"LENT_HANGUP", "RETIRE LENT CLOSE CONSUMERS=1"},
	{"DEVICE_EOF", "DEVICE"},
	{"UNSPOILT", "DEVICE NOHANDLE"},
	{"NO_EVENT", "EVENTS"},
	{"REUSE_WRITING", "EVENTS"},
	{"OFFER_EARLY", "EVENTS COMPLETE"},
	{"QUARANTINE_EOF", "DISCONNECT"},
	{"REVOKE_SENT", "DISCONNECT"},
}

// badReading is the same for reading.pml.
var badReading = []struct{ fault, defs string }{
	{"NO_WAY", ""},
	{"PARK_LATE", "PACKETS=0 OTHERS=1"},
	{"BACKGROUND_PARK_LATE", ""},
	{"NO_WAKE", ""},
	{"ASLEEP_LATE", ""},
	{"SIGNAL_SILENT", "PACKETS=0 OTHERS=1"},
	{"END_SILENT", ""},
}

// tools are the programs that run a model.
type tools struct{ spin, cc string }

func find(t *testing.T) tools {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: takes half a minute, and nothing of it is Go")
	}
	spin, err := exec.LookPath("spin")
	if err != nil {
		t.Skip("the protocol's model is not explored without spin (apt-get install spin): ", err)
	}
	names := []string{"gcc", "clang", "cc"}
	if cc := os.Getenv("CC"); cc != "" {
		names = []string{cc}
	}
	for _, name := range names {
		if cc, err := exec.LookPath(name); err == nil {
			return tools{spin, cc}
		}
	}
	t.Skip("the protocol's model is not explored without a C compiler (apt-get install gcc libc6-dev): found none of ", strings.Join(names, ", "))
	return tools{}
}

var counts = regexp.MustCompile(`errors: (\d+)\s+(\d+) states, stored`)

// How a verifier is compiled and how large the table is in which it begins to
// keep states (a power of two; it grows as needed). Compiling takes longer than
// exploring, so what ends at its first fault is compiled without optimisation.
var (
	exhaustive = []string{"-O1", "-w24"}
	untilFault = []string{"-O0", "-w18"}
)

// explore runs a model with the definitions and returns how many states it
// has, and what went wrong in one of them.
func (c tools) explore(t *testing.T, file string, defs, how []string) (states int, fault string) {
	t.Helper()
	source, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(source); err != nil { // Spin reads it; with this, the test's cached result is the model's too
		t.Fatal(err)
	}
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
	out := run(c.spin, append(defs, "-a", source)...)
	if _, err := os.Stat(filepath.Join(dir, "pan.c")); err != nil {
		t.Fatalf("spin made no verifier:\n%s", out)
	}
	run(c.cc, how[0], "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-DMEMLIM=16000", "-o", "pan", "pan.c")
	args := []string{"-m1000000", how[1]}
	if strings.HasSuffix(file, "reading.pml") { // a wait without end may be correct: the monitor of the model tells which is not
		args = append(args, "-E")
	}
	out = run(filepath.Join(dir, "pan"), args...)
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
			if g.small && !*small && !*large {
				t.Skip("its parts are in other configurations: runs with -small")
			}
			t.Parallel()
			file := cmp.Or(g.file, "leases.pml")
			states, fault := c.explore(t, file, definitions(g.defs), exhaustive)
			if fault != "" {
				t.Errorf("%s: got %s after %d states, want no fault; to see the steps: spin %s -a %s, build and run pan, spin -t -p %s %s",
					g.defs, fault, states, strings.Join(definitions(g.defs), " "), file, strings.Join(definitions(g.defs), " "), file)
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
	seen := map[string]bool{}
	find := func(file, fault, defs string) {
		again := seen[file+defs]
		seen[file+defs] = true
		t.Run(fault, func(t *testing.T) {
			if again && !*small && !*large {
				t.Skip("another fault of the same configuration stands for it: runs with -small")
			}
			t.Parallel()
			states, found := c.explore(t, file, definitions(defs+" M_"+fault), untilFault)
			if !strings.Contains(found, "assertion violated") {
				t.Errorf("got %q after %d states, want a violated assertion", found, states)
			}
			t.Logf("%d states: %s", states, found)
		})
	}
	for _, b := range bad {
		find("leases.pml", b.fault, b.defs)
	}
	for _, b := range badReading {
		find("reading.pml", b.fault, b.defs)
	}
}

// TestFaultsAreKnown holds the tables of faults to those in the models.
func TestFaultsAreKnown(t *testing.T) {
	for file, table := range map[string][]struct{ fault, defs string }{"leases.pml": bad, "reading.pml": badReading} {
		var listed []string
		for _, b := range table {
			listed = append(listed, b.fault)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range regexp.MustCompile(`\bM_([A-Z_]*[A-Z])\b`).FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		for _, list := range []*[]string{&found, &listed} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
		if !slices.Equal(found, listed) {
			t.Errorf("%s: got the faults %v in the model and %v in the table, want the same", file, found, listed)
		}
	}
}
