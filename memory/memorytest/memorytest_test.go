package memorytest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
)

// recorder is a test that is watched instead of failed.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
	env      int
}

func (r *recorder) Helper()                   {}
func (r *recorder) Name() string              { return "recorder" }
func (r *recorder) Setenv(string, string)     { r.env++ }
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }

// check runs body as a test with Check and returns what Check reported.
func check(t *testing.T, body func()) string {
	t.Helper()
	r := &recorder{TB: t}
	Check(r)
	body()
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	if r.env != 1 {
		t.Errorf("got %d environment variables set, want 1: without it t.Parallel would be allowed", r.env)
	}
	return strings.Join(r.errors, "\n")
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func alloc(t *testing.T, bytes int) *memory.Buffer {
	b, err := memory.Alloc(bytes, memory.Scratch)
	return must(t, b, err)
}

func TestCleanTestPasses(t *testing.T) {
	old := alloc(t, 10)
	defer old.Release()
	report := check(t, func() {
		b := alloc(t, 1000)
		h := must2(old.NewHandle())(t)
		if err := h.Use(); err != nil {
			t.Fatal(err)
		}
		h.EndUse()
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
	})
	if report != "" {
		t.Errorf("got %q, want no report", report)
	}
}

func must2[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); return must(t, v, err) }
}

func wantReport(t *testing.T, report string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(report, part) {
			t.Errorf("got report %q, want it to contain %q", report, part)
		}
	}
	if invariant.Enabled != strings.Contains(report, "memorytest_test.go:") {
		t.Errorf("got report %q, want sites exactly in the invariant build", report)
	}
}

func TestBufferLeftBehind(t *testing.T) {
	var b *memory.Buffer
	report := check(t, func() { b = alloc(t, 4321); b.SetLabel("i8") })
	wantReport(t, report, "4321 bytes of scratch (i8), 1 holders")
	if err := b.Release(); err != nil {
		t.Error(err)
	}
}

func TestHandleAndUseLeftBehind(t *testing.T) {
	old := alloc(t, 10)
	defer old.Release()
	known := must2(old.NewHandle())(t)
	defer known.Release()
	var h memory.Handle
	report := check(t, func() {
		h = must2(old.NewHandle())(t)
		if err := h.Use(); err != nil {
			t.Fatal(err)
		}
	})
	wantReport(t, report, "on a buffer from before: 10 bytes of scratch", "handle not released, 1 uses not ended")
	if strings.Count(report, "handle ") != 1 {
		t.Errorf("got report %q, want the handle of before left out", report)
	}
	h.EndUse()
	if err := h.Release(); err != nil {
		t.Error(err)
	}

	report = check(t, func() {
		if err := known.Use(); err != nil {
			t.Fatal(err)
		}
	})
	wantReport(t, report, "on a buffer from before", "1 uses not ended")
	known.EndUse()

	report = check(t, func() {
		if err := old.Retain(); err != nil {
			t.Fatal(err)
		}
	})
	if !strings.Contains(report, "3 holders") {
		t.Errorf("got report %q, want one more holder", report)
	}
	if err := old.Release(); err != nil {
		t.Error(err)
	}
}

//go:noinline
func drop(t *testing.T) { must2(alloc(t, 5555).IntoHandle())(t) }

func TestDroppedAndCollected(t *testing.T) {
	seen := make(chan bool, 100)
	old := memory.OnLeak(func(memory.Leak) { seen <- true }) // Check passes on the leaks that it has recorded
	defer func() { memory.OnLeak(old) }()
	report := check(t, func() {
		drop(t)
		for end := time.Now().Add(20 * time.Second); len(seen) == 0 && time.Now().Before(end); {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	})
	wantReport(t, report, "5555 bytes of scratch dropped without Release")
}

func TestWaitsForGoroutinesThatAreEnding(t *testing.T) {
	report := check(t, func() {
		b := alloc(t, 10)
		go func() {
			time.Sleep(5 * time.Millisecond)
			_ = b.Release()
		}()
	})
	if report != "" {
		t.Errorf("got %q, want no report", report)
	}
}

func TestParallelSubtestsAreCovered(t *testing.T) {
	Check(t)
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if err := alloc(t, 100).Release(); err != nil {
				t.Error(err)
			}
		})
	}
}
