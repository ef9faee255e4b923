package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// The test binary plays the server without Tenure.
func TestMain(m *testing.M) {
	servePlainIfAsked()
	os.Exit(m.Run())
}

// small is a run that takes as little as possible.
func small(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), turns: 2, span: time.Millisecond, sizes: []int{4, 8192}, clients: []int{1, 2}, result: results.New("serve", nil, "part", "request", "clients")}
	b.load = overloadOptions{lasts: 500 * time.Millisecond, times: 3, memory: 64}
	if err := b.build(); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestParts measures all parts, and looks for rows and figures.
func TestParts(t *testing.T) {
	if testing.Short() {
		t.Skip("servers are built and started; -short")
	}
	b := small(t)
	for _, p := range parts {
		if err := p.measure(b); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	rows := map[string]int{}
	for _, row := range b.result.Rows {
		name, _, _ := strings.Cut(row.Case[0], ",")
		rows[name]++
	}
	for name, want := range map[string]int{"wire": 8, "json": 1, "batch": 2, "generate": 2, "overload": 2} {
		if rows[name] != want {
			t.Errorf("%s: got %d rows, want %d", name, rows[name], want)
		}
	}
	for _, row := range b.result.Rows {
		for _, name := range []string{"without an answer", "done and not received"} {
			if f, ok := row.Figures[name]; ok && f.Median != 0 {
				t.Errorf("%q: got %v %s, want none", row.Case, f.Median, name)
			}
		}
	}
	var text strings.Builder
	if err := b.table(&text); err != nil || strings.Count(text.String(), "wire, echo") != 4 {
		t.Errorf("got %v and\n%s\nwant four rows of echo", err, text.String())
	}
}

// TestTurn computes figures of a turn.
func TestTurn(t *testing.T) {
	one := turn{lasted: 2 * time.Second}
	for i := range 200 {
		one.nanos = append(one.nanos, int64(i))
	}
	if got := []float64{float64(one.quantile(0.5)), float64(one.quantile(0.99)), float64(one.quantile(1)), one.perSecond()}; got[0] != 100 || got[1] != 198 || got[2] != 199 || got[3] != 100 {
		t.Errorf("got %v, want 100, 198, 199 and 100 requests/s", got)
	}
}

// TestFlags refuses what cannot be measured.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-sizes", "3"}, {"-clients", "0"}, {"-turns", "0"}, {"-parts", "wires", "-turns", "1"}, {"-from"}} {
		if err := run(args); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
}
