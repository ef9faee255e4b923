package tokenizer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/tokenizer"
)

// prose returns texts of words, as most requests have them.
func prose(n int) []string {
	rng := rand.New(rand.NewPCG(21, 22))
	plain := strings.Fields(`the quick brown fox jumps over lazy dog and doesn't mind, a tensor is handle on memory
outside heap; holds these bytes? We'll see what they've said: I'm sure it's fine. Models run in an amount of 1024
known before El pingüino hizo kilómetros bajo lluvia Größe (x + y) return None # 3.14`)
	texts := make([]string, n)
	for i := range texts {
		var b strings.Builder
		for range 100 {
			b.WriteString(plain[rng.IntN(len(plain))])
			b.WriteByte(' ')
		}
		texts[i] = b.String()
	}
	return texts
}

func load(t testing.TB, kind string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Parse(fixture(t, kind))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func BenchmarkEncode(b *testing.B) {
	list := prose(100)
	size := 0
	for _, text := range list {
		size += len(text)
	}
	for _, kind := range kinds {
		tok := load(b, kind)
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range list {
					if _, err := tok.Encode(text); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(kind+"-ids", func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var ids []int64
			for b.Loop() {
				for _, text := range list {
					var err error
					if ids, err = tok.AppendIDs(ids[:0], text); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkReference is the reference library on the same texts. Its figure is
// of the time on processors in its own process, without the exchange of
// messages.
func BenchmarkReference(b *testing.B) {
	list := prose(100)
	size := 0
	for _, text := range list {
		size += len(text)
	}
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			ref := newReference(b)
			ref.ask(request{"load": string(fixture(b, kind))})
			ref.ask(request{"time": list})
			seconds, n := 0.0, 0
			for b.Loop() {
				seconds += ref.ask(request{"time": list}).Seconds
				n++
			}
			b.ReportMetric(float64(size)*float64(n)/seconds/1e6, "MB/s")
		})
	}
}

func ExampleTokenizer_Encode() {
	tok, err := tokenizer.Load("testdata/wordpiece.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := tok.Encode("The quick tensor")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Tokens, e.Offsets[1])
	fmt.Println(tok.Decode(e.IDs, true))
	// Output:
	// [[CLS] the quick tensor [SEP]] {0 3}
	// the quick tensor
}
