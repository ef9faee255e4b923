package plan

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func someRange() *Range {
	return &Range{Dims: []RangeDim{{Name: "batch", Most: 8}, {Name: "past + 1", Most: 7, Sizes: []int{0, 3, 7}}}, Sizes: 27,
		Arena: RangeFigure{Bytes: 4096, At: []int{8, 7}}, Scratch: RangeFigure{Bytes: 64, At: []int{1, 0}}, IO: RangeFigure{Bytes: 9, At: []int{8, 7}},
		Worst: RangeFigure{Bytes: 4169, At: []int{8, 7}, Bound: true}, WeightBytes: 1 << 30, Threads: 2, MaxConcurrent: 3, GivesBack: true, Structures: 1,
		Pinned: []Pinned{{"a reason", 2}}, Refused: 1, Refusals: []Refusal{{[]int{0, 0}, "no <size>"}}, Unpromised: []Unpromised{{"%x", "n", "data"}}}
}

func TestRangeJSON(t *testing.T) {
	var out bytes.Buffer
	want := someRange()
	if err := want.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRangeJSON(bytes.NewReader(out.Bytes()))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want what was written, %+v", got, err, want)
	}
}

// TestReadRangeJSONRejects changes one thing of a document.
func TestReadRangeJSONRejects(t *testing.T) {
	var out bytes.Buffer
	if err := someRange().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{out.String(), "", "json at byte 0"},
		{out.String(), "null", "got null, want an object"},
		{out.String(), out.String() + "{}", "want one document"},
		{`"sizes": 27`, `"size": 27`, `unknown field "size"`},
		{`"most": 8`, `"most": -8`, "dims[0].most: got -8"},
		{`"most": 7`, `"most": 8`, "dims[1].sizes: got [0 3 7]"},
		{`"past + 1"`, `"batch"`, `dims[1].name: got "batch"`},
		{`"threads": 2`, `"threads": 0`, "threads, max_concurrent: got 0 and 3"},
		{`"bytes": 64`, `"bytes": -64`, "scratch.bytes: got -64"},
		{`"weight_bytes": 1073741824`, `"weight_bytes": -1`, "weight_bytes: got -1"},
		{`"bytes": 9,
    "at": [
      8,`, `"bytes": 9,
    "at": [`, "io.at: got 1 sizes"},
	} {
		text := strings.Replace(out.String(), c.from, c.to, 1)
		if text == out.String() {
			t.Fatalf("%q is not in the document", c.from)
		}
		if _, err := ReadRangeJSON(strings.NewReader(text)); !errors.Is(err, ErrDocument) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: got %v, want an ErrDocument with %q", c.to, c.from, err, c.want)
		}
	}
}

func FuzzReadRangeJSON(f *testing.F) {
	var out bytes.Buffer
	if err := someRange().WriteJSON(&out); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadRangeJSON(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrDocument) {
				t.Errorf("got %v, want an ErrDocument", err)
			}
			return
		}
		var again bytes.Buffer
		if err := r.WriteJSON(&again); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRangeJSON(&again); err != nil {
			t.Errorf("got %v for what was written", err)
		}
		if err := r.Report(&again); err != nil {
			t.Error(err)
		}
	})
}
