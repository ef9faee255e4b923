package solve_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/plan"
)

// scaled returns the problem with the bytes of each storage times a number.
func scaled(p *plan.Problem, by func(i int) int64) *plan.Problem {
	q := &plan.Problem{Align: p.Align}
	for i, s := range p.Storages {
		n := by(i)
		s.Size, s.Pieces = s.Size*n, slices.Clone(s.Pieces)
		for k := range s.Pieces {
			s.Pieces[k].Offset, s.Pieces[k].Size = s.Pieces[k].Offset*n, s.Pieces[k].Size*n
		}
		q.Storages = append(q.Storages, s)
	}
	return q
}

// place places a problem as known and checks it against what Solve finds.
func place(t *testing.T, k *solve.Known, p *plan.Problem, o solve.Options) plan.Placement {
	t.Helper()
	a, err := k.Place(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckPlacement(a); err != nil {
		t.Fatal(err)
	}
	if want := solved(t, p, o).Size; float64(a.Size) > 1.05*float64(want) {
		t.Fatalf("got %d bytes (%s), want at most 1.05 of %d", a.Size, a.Method, want)
	}
	return a
}

// Storages of other sizes, with any pieces, are placed soundly, at most a
// twentieth above the result of a search.
func TestKnownPlacesOtherSizes(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	var repeated, packed, searched int
	for round := range 200 {
		p := &plan.Problem{Align: 4}
		for range 3 + random.IntN(20) {
			c := plan.Storage{Size: 4 * (1 + random.Int64N(9))}
			if round%2 == 0 {
				c.Pieces = []plan.Piece{randomLife(random, 0, c.Size)}
			} else {
				for range random.IntN(4) {
					offset := random.Int64N(c.Size)
					c.Pieces = append(c.Pieces, randomLife(random, offset, random.Int64N(c.Size-offset+1)))
				}
			}
			p.Storages = append(p.Storages, c)
		}
		var k solve.Known
		o := solve.Options{Effort: 50_000}
		k.Remember(p, solved(t, p, o))
		for range 6 {
			n, m := random.Int64N(4), 1+random.Int64N(7)
			place(t, &k, scaled(p, func(i int) int64 { return []int64{m, n, m + n}[i%3] }), o)
		}
		repeated, packed, searched = repeated+k.Repeated, packed+k.Packed, searched+k.Searched
	}
	if repeated < 300 || packed == 0 || searched == 0 {
		t.Errorf("got %d placed as before, %d packed, %d searched, want at least 300 and some", repeated, packed, searched)
	}
}

// A network of another batch lies as before.
func TestKnownKeepsNetworks(t *testing.T) {
	for name, p := range map[string]*plan.Problem{"resnet": resnet(), "densenet": densenet(true, false)} {
		var k solve.Known
		want := solved(t, p, solve.Options{})
		k.Remember(p, want)
		for _, n := range []int64{1, 3, 8} {
			if a := place(t, &k, scaled(p, func(int) int64 { return n }), solve.Options{}); a.Size > n*want.Size {
				t.Errorf("%s, %d pictures: got %d bytes, want at most %d", name, n, a.Size, n*want.Size)
			}
		}
		t.Logf("%s: %d placed as before, %d packed, %d searched", name, k.Repeated, k.Packed, k.Searched)
	}
}

// Problems of other numbers of storages are solved, and nothing is as well.
func TestKnownOfAnotherNumber(t *testing.T) {
	var k solve.Known
	for n := range 4 {
		p := &plan.Problem{}
		for i := range n {
			p.Storages = append(p.Storages, plan.Storage{Size: 64, Pieces: []plan.Piece{piece(0, 64, plan.Time(i), plan.Time(i+2))}})
		}
		if a := place(t, &k, p, solve.Options{}); a.Size != 64*int64(min(n, 2)) {
			t.Errorf("%d storages: got %d bytes", n, a.Size)
		}
	}
}

// A problem fits again into the bytes that it took before, whatever came
// between, and into any larger capacity. The arena is at most a fiftieth larger
// than a search's.
func TestKnownPlacesWithin(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 5))
	var figures solve.Known
	for round := range 80 {
		p := &plan.Problem{Align: 4}
		for range 3 + random.IntN(20) {
			c := plan.Storage{Size: 4 * (1 + random.Int64N(9))}
			for range 1 + random.IntN(1+round%3) {
				offset := random.Int64N(c.Size)
				c.Pieces = append(c.Pieces, randomLife(random, offset, 1+random.Int64N(c.Size-offset)))
			}
			p.Storages = append(p.Storages, c)
		}
		var k solve.Known
		o := solve.Options{Effort: 50_000}
		within := func(k *solve.Known, p *plan.Problem, capacity solve.Capacity) int64 {
			t.Helper()
			a, err := k.PlaceWithin(t.Context(), p, capacity, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.CheckPlacement(a); err != nil {
				t.Fatal(err)
			}
			return a.Size
		}
		var problems []*plan.Problem
		var took []int64
		capacity := int64(0)
		for range 12 {
			n, m := random.Int64N(4), 1+random.Int64N(7)
			q := scaled(p, func(i int) int64 { return []int64{m, n, m + n}[i%3] })
			size, want := within(&k, q, solve.Capacity{Bytes: capacity}), solved(t, q, o).Size
			if size > max(capacity, want+want/50) {
				t.Errorf("round %d: got %d bytes, capacity %d, want at most 1.02 of %d", round, size, capacity, want)
			}
			problems, took, capacity = append(problems, q), append(took, size), max(capacity, size)
		}
		for _, i := range random.Perm(len(problems)) {
			for _, bytes := range []int64{took[i], capacity} {
				if size := within(&k, problems[i], solve.Capacity{Bytes: bytes, Fixed: true}); size > bytes {
					t.Errorf("round %d: got %d bytes, want at most %d, as before", round, size, bytes)
				}
			}
			var alone, again solve.Known
			first := within(&alone, problems[i], solve.Capacity{})
			if second := within(&again, problems[i], solve.Capacity{Bytes: first, Fixed: true}); second > first {
				t.Errorf("round %d: got %d bytes, want at most %d, as before", round, second, first)
			}
		}
		figures.Repeated, figures.Packed, figures.Searched = figures.Repeated+k.Repeated, figures.Packed+k.Packed, figures.Searched+k.Searched
	}
	if figures.Repeated < 1200 || figures.Packed == 0 || figures.Searched == 0 {
		t.Errorf("got %d placed as before, %d packed, %d searched, want at least 1200 and some", figures.Repeated, figures.Packed, figures.Searched)
	}
	t.Logf("%d placed as before, %d packed, %d searched", figures.Repeated, figures.Packed, figures.Searched)
}
