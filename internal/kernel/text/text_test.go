package text_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/text"
)

func TestText(t *testing.T) {
	t.Run("recase", testRecase)
	t.Run("normalize", testNormalize)
	t.Run("pairs", testTextPairs)
	t.Run("split", testSplitText)
}

// textParts are the parts of random strings: letters of one to four bytes,
// white space of all kinds, a delimiter, bytes that are no UTF-8.
var textParts = []string{"a", "B", "k", " ", "\t", "\u00a0", "\u3000", "--", "ß", "É", "ɐ", "İ", "Ω", "中", "𐐀", "\xff", "\xc3", "\uFFFD"}

func randomText(r *rand.Rand, n int) []string {
	list := make([]string, n)
	for i := range list {
		for range r.IntN(6) {
			list[i] += textParts[r.IntN(len(textParts))]
		}
	}
	return list
}

// textIn returns a guarded copy of strings, as wide as the longest and maybe
// wider.
func textIn(s *kerneltest.Space, r *rand.Rand, name string, list []string) text.Text {
	width := 1 + r.IntN(3)
	for _, v := range list {
		width = max(width, len(v))
	}
	data := make([]byte, len(list)*width)
	for i, v := range list {
		copy(data[i*width:], v)
	}
	return text.Text{Data: kerneltest.In(s, name, data), Width: width}
}

func textOut(s *kerneltest.Space, n, width int) text.Text {
	return text.Text{Data: kerneltest.Out[byte](s, "dst", n*width), Width: width}
}

// wantText compares strings, and holds the bytes behind them to be zero.
func wantText(t *testing.T, what string, got text.Text, want []string) {
	t.Helper()
	for i, w := range want {
		row := string(got.Data[i*got.Width:][:got.Width])
		if row != w+strings.Repeat("\x00", got.Width-len(w)) || string(got.At(i)) != w {
			t.Fatalf("%s: string %d: got %q, want %q", what, i, row, w)
		}
	}
}

// Every character fits into the width that op.CasedWidth returns.
func testRecase(t *testing.T) {
	for r := rune(1); r < 0x20000; r++ { // letters with a case are in the first two planes
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		for upper, change := range map[bool]func(dst, s []byte) []byte{false: text.AppendLower, true: text.AppendUpper} {
			got := string(change(nil, []byte(s)))
			if want := ref.Recase(s, upper); got != want {
				t.Fatalf("%q: got %q, want %q", s, got, want)
			}
			if len(got) > len(s)+len(s)/2 {
				t.Fatalf("%q: got %q, of more than %d bytes", s, got, len(s)+len(s)/2)
			}
		}
	}
}

func testNormalize(t *testing.T) {
	r := kerneltest.NewRand(170)
	for i := range 200 {
		list := randomText(r, r.IntN(7))
		stop := randomText(r, r.IntN(3))
		if len(list) > 0 {
			stop = append(stop, ref.Recase(list[0], true))
		}
		z := &text.Normalizer{Fold: i%2 == 0, Stop: map[string]bool{}}
		for _, word := range stop {
			if z.Fold {
				word = ref.Recase(word, false)
			}
			z.Stop[word] = true
		}
		want := ref.Normalize(list, stop, z.Fold)
		if i%3 > 0 {
			z.Change = []func(dst, s []byte) []byte{nil, text.AppendLower, text.AppendUpper}[i%3]
			for k := range want {
				want[k] = ref.Recase(want[k], i%3 == 2)
			}
		}
		s := kerneltest.NewSpace(t)
		src := textIn(s, r, "src", list)
		wide := src.Width + src.Width/2
		dst := textOut(s, max(len(list), 1), wide)
		if n := text.Normalize(z, dst, src, len(list), kerneltest.Out[byte](s, "scratch", wide)); n != len(want) {
			t.Fatalf("%q without %q: got %d strings, want %q", list, stop, n, want)
		}
		s.Check()
		wantText(t, "normalize", dst, want)
	}
}

func testTextPairs(t *testing.T) {
	r := kerneltest.NewRand(171)
	a, b := randomText(r, 35), randomText(r, 7)
	b[3], a[3] = a[10], a[10]
	var joined []string
	var equal []uint8
	for i := range a {
		joined = append(joined, a[i]+b[i%7])
		equal = append(equal, 0)
		if a[i] == b[i%7] {
			equal[i] = 1
		}
	}
	s := kerneltest.NewSpace(t)
	x, y := textIn(s, r, "a", a), textIn(s, r, "b", b)
	n := new(kernel.Nest)
	n.Prepare([]int{5, 7}, []int{7, 1}, []int{7, 1}, []int{0, 1})
	dst, same := textOut(s, 35, x.Width+y.Width), kerneltest.Out[uint8](s, "equal", 35)
	for _, span := range [][2]int{{0, 4}, {4, 17}, {17, 35}} {
		text.ConcatText(n, span[0], span[1], dst, x, y)
		text.EqualText(n, span[0], span[1], same, x, y)
	}
	s.Check()
	wantText(t, "concat", dst, joined)
	places, want := map[string]int64{}, make([]int64, 35)
	for i, v := range b {
		if _, ok := places[v]; !ok {
			places[v] = int64(i)
		}
	}
	for i, v := range a {
		if want[i] = int64(slices.Index(b, v)); want[i] < 0 {
			want[i] = 99
		}
	}
	s = kerneltest.NewSpace(t)
	at := kerneltest.Out[int64](s, "places", 35)
	text.IndexText(at, textIn(s, r, "a", a), 0, 20, places, 99)
	text.IndexText(at, textIn(s, r, "a", a), 20, 35, places, 99)
	s.Check()
	if !slices.Equal(at, want) || !slices.Contains(want, 3) || !slices.Contains(want, 99) {
		t.Fatalf("places: got %v, want %v", at, want)
	}
	if !slices.Equal(same, equal) || !slices.Contains(equal, 1) {
		t.Fatalf("equal: got %v, want %v", same, equal)
	}
}

// Hashes of the definition's author and of others who publish test values.
func TestMurmur(t *testing.T) {
	for _, tc := range []struct {
		key  string
		seed uint32
		want uint32
	}{
		{"", 0, 0}, {"", 1, 0x514e28b7}, {"", 0xffffffff, 0x81f16f39}, {"\x00\x00\x00\x00", 0, 0x2362f9de},
		{"aaaa", 0x9747b28c, 0x5a97808a}, {"aaa", 0x9747b28c, 0x283e0130}, {"aa", 0x9747b28c, 0x5d211726}, {"a", 0x9747b28c, 0x7fa09ea6},
		{"Hello, world!", 0x9747b28c, 0x24884cba}, {"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd},
	} {
		if got := text.Murmur([]byte(tc.key), tc.seed); got != tc.want {
			t.Errorf("%q with seed %#x: got %#x, want %#x", tc.key, tc.seed, got, tc.want)
		}
	}
}

func testSplitText(t *testing.T) {
	r := kerneltest.NewRand(172)
	for i := range 300 {
		list := randomText(r, r.IntN(5))
		z := &text.TextSplit{Delimiter: []byte([]string{"", "--", "a"}[i%3]), Most: r.IntN(4) - 1}
		most := 0
		var counts []int64
		var rows [][]string
		for _, v := range list {
			row := ref.SplitString(v, string(z.Delimiter), z.Most)
			rows, counts, most = append(rows, row), append(counts, int64(len(row))), max(most, len(row))
		}
		var want []string
		for _, row := range rows {
			want = append(append(want, row...), make([]string, most-len(row))...)
		}
		s := kerneltest.NewSpace(t)
		src := textIn(s, r, "src", list)
		n := kerneltest.Out[int64](s, "counts", len(list))
		if got := text.CountParts(z, src, len(list), n); got != most || !slices.Equal(n, counts) {
			t.Fatalf("%q by %q, %d: got %d and %v, want %d and %v", list, z.Delimiter, z.Most, got, n, most, counts)
		}
		dst := textOut(s, len(want), src.Width)
		text.SplitText(z, dst, src, len(list), most)
		s.Check()
		wantText(t, "split", dst, want)
	}
}
