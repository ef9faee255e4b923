package fake

import (
	"fmt"
	"slices"
	"testing"
)

// Report is a mistake of the program that a device would not have told, or not
// in words.
type Report struct {
	Kind Kind
	Text string
}

func (r Report) String() string { return r.Text }

// Kind is a kind of report.
type Kind string

// The kinds of reports.
const (
	// Fault is an access that failed; the context is lost.
	Fault Kind = "fault"
	// Unwritten is a read, by a copy to the host or by a kernel, of bytes that
	// nobody wrote.
	Unwritten Kind = "unwritten"
	// Unordered is a conflict of operations of different streams.
	Unordered Kind = "unordered"
	// Race is a conflict of threads of a kernel.
	Race Kind = "race"
	// Overlap is a copy whose source and destination share bytes.
	Overlap Kind = "overlap"
	// Misuse is a call that the driver's documentation forbids without saying
	// what happens.
	Misuse Kind = "misuse"
)

// maxReports bounds the reports of a program that goes wrong all the time.
const maxReports = 1000

func (m *Machine) report(k Kind, format string, args ...any) {
	if len(m.reports) < maxReports {
		m.reports = append(m.reports, Report{k, fmt.Sprintf(format, args...)})
	}
}

// Reports returns the reports so far.
func (m *Machine) Reports() []Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reports)
}

// TakeReports returns the reports so far and forgets them.
func (m *Machine) TakeReports() []Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reports
	m.reports = nil
	return r
}

// CheckReports fails the test at its end if the machine has reports.
func CheckReports(t testing.TB, m *Machine) {
	t.Helper()
	t.Cleanup(func() {
		for _, r := range m.Reports() {
			t.Errorf("%s: %s: %s", m.name, r.Kind, r.Text)
		}
	})
}
