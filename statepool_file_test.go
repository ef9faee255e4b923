package tenure_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestPoolFiles saves a sequence, and goes on with its rows in pools with other
// blocks and in states of their own, whose files a pool reads too.
func TestPoolFiles(t *testing.T) {
	for name, text := range map[string]string{"attending": attending, "joining": joining, "rows last": rowForms["rows last"], "in one": rowForms["keys and values in one"]} {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			s := modeltest.Session(t, modelOf(t, text, tenure.WithStatePool()))
			alone := statesOf(t, modeltest.Session(t, modelOf(t, text, tenure.WithStates())), 20)
			first := poolOf(t, s, 8, 3)
			a := pooledText{textOf(t, first), alone}
			runRows(t, first, []pooledText{a}, 1, 5)
			file, other := filepath.Join(t.TempDir(), "a.safetensors"), filepath.Join(t.TempDir(), "b.safetensors")
			if err := errors.Join(a.pooled.Save(file), alone.Save(other)); err != nil {
				t.Fatal(err)
			}
			one, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			two, err := os.ReadFile(other)
			if err != nil || string(one) != string(two) {
				t.Fatalf("got error %v and %d bytes, want the %d of the file of states", err, len(one), len(two))
			}
			runRows(t, first, []pooledText{a}, 2, 2)
			for _, rows := range []int{1, 4} {
				pool := poolOf(t, s, 8, rows)
				q := textOf(t, pool)
				if err := errors.Join(q.Load(other), q.Load(file), alone.Load(file)); err != nil || q.Len() != 5 || alone.Len() != 5 {
					t.Fatalf("got error %v, %d and %d rows, want 5", err, q.Len(), alone.Len())
				}
				b := pooledText{q, alone}
				runRows(t, pool, []pooledText{b}, uint64(rows), 2)
				if got, want := statsOf(t, pool).Used, (7+rows-1)/rows; got != want {
					t.Errorf("got %d blocks in use, want %d", got, want)
				}
			}
		})
	}
}

// TestPoolFileErrors refuses files and pools that do not fit, and leaves the
// sequence as it was.
func TestPoolFileErrors(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool()))
	pool := poolOf(t, s, 4, 2)
	a := textOf(t, pool)
	run := func(n int, q *tenure.StateSequence) {
		t.Helper()
		out, err := pool.Run(context.Background(), []*tenure.StateSequence{q}, tenure.Inputs{"x": drawn(t, 3, 1, 2, n, 4)})
		if err != nil {
			t.Fatal(err)
		}
		out.Release()
	}
	run(5, a)
	file := filepath.Join(t.TempDir(), "a.safetensors")
	if err := a.Save(file); err != nil {
		t.Fatal(err)
	}
	f, err := a.Fork()
	if err != nil {
		t.Fatal(err)
	}
	before := statsOf(t, pool)
	err = f.Load(file)
	if want := "5 rows take 3 blocks of 2 rows, want at most the 1 of 4 that are free"; !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), want) {
		t.Errorf("no blocks: got error %v, want ErrLimit and %q", err, want)
	}
	if got := statsOf(t, pool); got != before || f.Len() != 5 {
		t.Errorf("no blocks: got %+v and %d rows, want %+v and 5", got, f.Len(), before)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Load(file); err != nil || a.Len() != 5 { // into its own blocks
		t.Errorf("got error %v and %d rows, want 5", err, a.Len())
	}
	if err := f.Load(file); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("a closed sequence: got error %v, want ErrClosed", err)
	}
	limited := textOf(t, poolOf(t, s, 9, 2, tenure.WithLongestSequence(4)))
	if err := limited.Load(file); !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), "got 5 rows, want at most 4") {
		t.Errorf("a limited pool: got error %v, want ErrLimit with the figures", err)
	}
	for name, c := range map[string]struct {
		text string
		kind error
	}{
		"names":  {strings.ReplaceAll(attending, "past_k", "past_keys"), tenure.ErrCorrupt},
		"heads":  {strings.ReplaceAll(attending, "[batch,2,", "[batch,4,"), tenure.ErrShape},
		"f16":    {narrowed(attending, "f16"), tenure.ErrDType},
		"layout": {rowForms["rows last"], tenure.ErrShape},
	} {
		pairs := []tenure.StatePair{{"past_k", "present_k"}, {"past_v", "present_v"}}
		if name == "names" {
			pairs[0].Input = "past_keys"
		}
		q := textOf(t, poolOf(t, modeltest.Session(t, modelOf(t, c.text, tenure.WithStatePool(pairs...))), 4, 2))
		if err := q.Load(file); !errors.Is(err, c.kind) {
			t.Errorf("%s: got error %v, want %v", name, err, c.kind)
		}
	}
	if err := a.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got error %v, want one that there is none", err)
	}
}
