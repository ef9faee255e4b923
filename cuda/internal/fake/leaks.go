package fake

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/invariant"
)

// site is where an object was made, in builds with the tag invariants.
type site []uintptr

// here returns the callers of the machine.
func here() site {
	if !invariant.Enabled {
		return nil
	}
	pcs := make([]uintptr, 24)
	return pcs[:runtime.Callers(3, pcs)]
}

// String returns the innermost callers outside of this package, in a form that
// follows a description.
func (s site) String() string {
	if len(s) == 0 {
		return ""
	}
	var b strings.Builder
	frames, shown := runtime.CallersFrames(s), 0
	for shown < 4 {
		f, more := frames.Next()
		if f.Function != "" && !strings.Contains(f.Function, "/cuda/internal/fake.(*") {
			if shown > 0 {
				b.WriteString(" < ")
			}
			fmt.Fprintf(&b, "%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
			shown++
		}
		if !more {
			break
		}
	}
	return " (" + b.String() + ")"
}

// Live describes every object that the program has not destroyed.
func (m *Machine) Live() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone || m.exited {
		return nil // nothing can be destroyed
	}
	all := slices.Clone(m.lost)
	note := func(s site, format string, args ...any) {
		all = append(all, fmt.Sprintf(format, args...)+s.String())
	}
	for _, c := range m.contexts {
		note(c.site, "the context of device %d, retained %d times", c.device.ordinal, c.holds)
	}
	for _, s := range m.byStream {
		note(s.site, "a stream")
	}
	for _, e := range m.events {
		note(e.site, "an event")
	}
	for _, mod := range m.modules {
		note(mod.site, "a module")
	}
	for _, g := range m.graphs {
		note(g.site, "a graph")
	}
	for _, e := range m.execs {
		note(e.site, "an executable graph")
	}
	for _, p := range m.memory {
		note(p.site, "a handle of %d bytes of device %d", p.size, p.device.ordinal)
	}
	for _, r := range m.space.reserved {
		note(r.site, "a reservation of %d bytes", r.size)
	}
	for _, a := range m.space.all {
		if a.freed == nil {
			note(a.site, "%s of %d bytes", a.kind, a.size)
		}
	}
	slices.Sort(all)
	return all
}

// CheckLeaks fails the test at its end if the program has not destroyed all of
// its objects. In builds with the tag invariants it says where they were made.
func CheckLeaks(t testing.TB, m *Machine) {
	t.Helper()
	t.Cleanup(func() {
		for _, l := range m.Live() {
			t.Errorf("%s: left behind: %s", m.name, l)
		}
	})
}
