package plan_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/plan"
	"pgregory.net/rapid"
)

func TestReadCSV(t *testing.T) {
	p, err := plan.ReadCSV(strings.NewReader("size,upper,lower,id,offset\n4,3,0,a,0\n8, 9, 3,b,0\n2,9,3,a,6\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &plan.Problem{Align: 1, Storages: []plan.Storage{
		{Name: "a", Size: 8, Pieces: []plan.Piece{{0, 4, 0, 3}, {6, 2, 3, 9}}},
		{Name: "b", Size: 8, Pieces: []plan.Piece{{0, 8, 3, 9}}},
	}}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, want %+v", p, want)
	}
}

func TestReadCSVRejects(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "header: EOF"},
		{"no size", "id,lower,upper\na,0,1\n", `want a column "size"`},
		{"unknown column", "id,lower,upper,size,gaps\n", `got column "gaps"`},
		{"column twice", "id,lower,upper,size,size\n", `got column "size"`},
		{"short row", "id,lower,upper,size\na,0,1\n", "wrong number of fields"},
		{"not a number", "id,lower,upper,size\na,0,x,4\n", `line 2: upper: got "x"`},
		{"negative", "id,lower,upper,size\na,0,1,4\nb,0,1,-4\n", `line 3: size: got "-4"`},
		{"life backwards", "id,lower,upper,size\na,3,3,4\n", "line 2: life: got [3,3)"},
		{"life past time", "id,lower,upper,size\na,3,4000000000,4\n", "line 2: life: got [3,4000000000)"},
		{"id twice", "id,lower,upper,size\na,0,1,4\na,1,2,4\n", `line 3: id: got "a" a second time`},
		{"end overflows", "id,lower,upper,size,offset\na,0,1,4611686018427387904,1\n", "line 2: end: got 4611686018427387904 bytes at offset 1"},
		{"open quote", "id,lower,upper,size\n\"a,0,1,4\n", "extraneous or missing"},
	} {
		p, err := plan.ReadCSV(strings.NewReader(test.text))
		if p != nil || !errors.Is(err, plan.ErrCSV) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, %v, want ErrCSV with %q", test.name, p, err, test.want)
		}
	}
	huge := "id,lower,upper,size\na,0,1,4611686018427387904\nb,0,1,1\n"
	if p, err := plan.ReadCSV(strings.NewReader(huge)); p != nil || !errors.Is(err, plan.ErrProblem) {
		t.Errorf("sum of sizes: got %v, %v, want ErrProblem", p, err)
	}
}

func TestWriteCSVRejectsWhatTheFormCannotSay(t *testing.T) {
	piece := []plan.Piece{{0, 4, 0, 1}}
	for _, test := range []struct {
		name     string
		storages []plan.Storage
		want     string
	}{
		{"one name twice", []plan.Storage{{"a", 4, piece}, {"a", 4, piece}}, `got "a" a second time`},
		{"no pieces", []plan.Storage{{"a", 0, nil}}, `storage 0 ("a"): size`},
		{"slack", []plan.Storage{{"a", 8, piece}}, "size: got 8, want 4"},
	} {
		var out bytes.Buffer
		err := (&plan.Problem{Storages: test.storages}).WriteCSV(&out)
		if !errors.Is(err, plan.ErrCSV) || !strings.Contains(err.Error(), test.want) || out.Len() > 0 {
			t.Errorf("%s: got %v and %q, want ErrCSV with %q and nothing", test.name, err, out.String(), test.want)
		}
	}
}

// A problem of plain buffers is written with the columns of the benchmarks
// alone, and every problem comes back the same.
func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := problems().Draw(t, "problem")
		p.Align = 1
		plain := true
		for i := range p.Storages {
			c := &p.Storages[i]
			c.Name += rapid.SampledFrom([]string{"", ",", "\"", " x", "é\nß"}).Draw(t, "suffix")
			c.Size = 0
			for _, x := range c.Pieces {
				c.Size = max(c.Size, x.Offset+x.Size)
				plain = plain && len(c.Pieces) == 1 && x.Offset == 0
			}
		}
		var text bytes.Buffer
		if err := p.WriteCSV(&text); err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(text.String(), "id,lower,upper,size\n"); got != plain {
			t.Fatalf("got plain=%v, want %v: %s", got, plain, text.String())
		}
		got, err := plan.ReadCSV(&text)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Fatalf("got %+v, want %+v", got, p)
		}
	})
}

// A problem that ReadCSV accepts is valid and can be written as CSV again.
func FuzzReadCSV(f *testing.F) {
	f.Add("id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n")
	f.Add("size,upper,lower,id,offset\n4,3,0,a,0\n8, 9, 3,b,0\n2,9,3,a,6\n")
	f.Add("id,lower,upper,size\n\"a\nb\",0,1,0\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.ReadCSV(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, plan.ErrCSV) && !errors.Is(err, plan.ErrProblem) {
				t.Fatalf("got %v, want ErrCSV or ErrProblem", err)
			}
			return
		}
		var again bytes.Buffer
		if err := p.WriteCSV(&again); err != nil {
			t.Fatal(err)
		}
		got, err := plan.ReadCSV(&again)
		if err != nil || got.LowerBound().Bytes != p.LowerBound().Bytes {
			t.Fatalf("got %+v, %v, want %+v", got, err, p)
		}
	})
}
