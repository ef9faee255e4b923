package acceptance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestEinsum draws equations and holds the runs of their models to a sum over
// all indices at once. Numbers are small integers, so that sums are exact.
func TestEinsum(t *testing.T) {
	memorytest.Check(t)
	rapid.Check(t, func(t *rapid.T) {
		sizes := map[rune]int{}
		for _, l := range "abcdeZ" {
			sizes[l] = rapid.IntRange(1, 4).Draw(t, "size of "+string(l))
		}
		var terms []string
		var used []rune
		for i := range rapid.IntRange(1, 3).Draw(t, "terms") {
			term := rapid.SliceOfN(rapid.SampledFrom([]rune("abcdeZ")), 0, 3).Draw(t, fmt.Sprint("term ", i))
			terms = append(terms, string(term))
			for _, l := range term {
				if !slices.Contains(used, l) {
					used = append(used, l)
				}
			}
		}
		result := ""
		for _, l := range rapid.Permutation(used).Draw(t, "order") {
			if rapid.Bool().Draw(t, "keep "+string(l)) {
				result += string(l)
			}
		}
		symbolic := rapid.Bool().Draw(t, "symbolic")
		checkEinsum(t, terms, result, strings.Join(terms, ",")+"->"+result, sizes, symbolic)
	})
}

// Forms that are not drawn: no arrow, an ellipsis of several axes.
func TestEinsumForms(t *testing.T) {
	memorytest.Check(t)
	sizes := map[rune]int{'a': 2, 'b': 3, 'c': 4, 'x': 2, 'y': 3}
	for _, tc := range []struct{ equation, terms, result string }{
		{"ba,bc", "ba,bc", "ac"}, {"b a", "ba", "ab"}, {"aa", "aa", ""},
		{"...ab,...bc->...ac", "xyab,xybc", "xyac"}, {"...ab,bc", "xyab,bc", "xyac"}, {"a...->...a", "axy", "xya"}, {"...a,...a->...", "xya,ya", "xy"},
		{"...->", "xy", ""}, {"...,...->...", "y,xy", "xy"},
	} {
		checkEinsum(t, strings.Split(tc.terms, ","), tc.result, tc.equation, sizes, false)
	}
}

func checkEinsum(t modeltest.TB, terms []string, result, equation string, sizes map[rune]int, symbolic bool) {
	t.Helper()
	t.Logf("%s of %v", equation, sizes)
	var g onnxtest.Graph
	var names []string
	in := tenure.Inputs{}
	var data [][]float32
	for i, term := range terms {
		var declared []any
		var dims []int
		count := 1
		for _, l := range term {
			dims = append(dims, sizes[l])
			count *= sizes[l]
			if symbolic {
				declared = append(declared, "dim_"+string(l))
			} else {
				declared = append(declared, sizes[l])
			}
		}
		numbers := make([]float32, count)
		for k := range numbers {
			numbers[k] = float32((k*7+3*i)%5 - 2)
		}
		name := fmt.Sprint("x", i)
		names, data = append(names, name), append(data, numbers)
		g.Input(name, onnxtest.F32, declared...)
		in[name] = modeltest.Of(t, numbers, dims...)
	}
	g.Node("Einsum", names, []string{"y"}, onnxtest.Text("equation", equation))
	g.Output("y")
	out := modeltest.Run(t, modeltest.Session(t, modeltest.LoadBytes(t, g.File())), in)
	y := modeltest.Values(t, out["y"])
	if want := einsum(terms, result, sizes, data); !slices.Equal(y, want) {
		t.Fatalf("got %v, want %v", y, want)
	}
}

// einsum goes through all values of all letters.
func einsum(terms []string, result string, sizes map[rune]int, data [][]float32) []float32 {
	var letters []rune
	for _, l := range strings.Join(terms, "") {
		if !slices.Contains(letters, l) {
			letters = append(letters, l)
		}
	}
	place := func(term string, at map[rune]int) int {
		p := 0
		for _, l := range term {
			p = p*sizes[l] + at[l]
		}
		return p
	}
	count := 1
	for _, l := range result {
		count *= sizes[l]
	}
	sum := make([]float32, count)
	at := map[rune]int{}
	var walk func(i int)
	walk = func(i int) {
		if i < len(letters) {
			for v := range sizes[letters[i]] {
				at[letters[i]] = v
				walk(i + 1)
			}
			return
		}
		p := float32(1)
		for k, term := range terms {
			p *= data[k][place(term, at)]
		}
		sum[place(result, at)] += p
	}
	walk(0)
	return sum
}
