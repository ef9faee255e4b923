package tokenizer_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer"
)

var update = flag.Bool("update", false, "write the encodings of the reference library into testdata/want")

// A golden is a text with what the reference library makes of it.
type golden struct {
	Text    string
	IDs     []int64
	Offsets [][2]int // in characters
	Skipped string   // what the ids decode to, without special tokens
}

// TestGolden compares encodings with committed ones of the reference library.
func TestGolden(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join("testdata", "want", kind+".json")
			if *update {
				writeGolden(t, path, kind)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var list []golden
			if err := json.Unmarshal(data, &list); err != nil {
				t.Fatal(err)
			}
			tok := load(t, kind)
			for _, g := range list {
				e, err := tok.Encode(g.Text, tokenizer.CharOffsets())
				if err != nil {
					t.Errorf("%q: %v", g.Text, err)
					continue
				}
				got := asEncoded(e)
				want := got
				want.IDs, want.Offsets = g.IDs, g.Offsets
				if d := differs(got, want); d != "" {
					t.Errorf("%q: %s", g.Text, d)
				}
				if d := tok.Decode(e.IDs, true); d != g.Skipped {
					t.Errorf("%q: decoded to %q, want %q", g.Text, d, g.Skipped)
				}
			}
		})
	}
}

func writeGolden(t *testing.T, path, kind string) {
	ref := newReference(t)
	if a := ref.ask(request{"load": string(fixture(t, kind))}); a.Error != "" {
		t.Fatal(a.Error)
	}
	rng := rand.New(rand.NewPCG(31, 32))
	var out bytes.Buffer
	for n := 0; n < 60; {
		text := drawText(rng)
		if utf8.RuneCountInString(text) > 150 {
			continue
		}
		a := ref.ask(request{"text": text, "special": true})
		line, err := json.Marshal(golden{text, a.IDs, a.Offsets, a.Skipped})
		if err != nil {
			t.Fatal(err)
		}
		lead := ",\n"
		if n == 0 {
			lead = "[\n"
		}
		out.WriteString(lead)
		out.Write(line)
		n++
	}
	out.WriteString("\n]\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
