package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tenure-go/tenure/plan"
)

// Every edit of the residual fixture is refused with an error that names the
// place and the expected text.
func TestReadJSONRejects(t *testing.T) {
	rejectsEdits(t, "residual", []edit{
		{"another format", `"format": 6`, `"format": 7, "novelty": true`, "format: got 7, want 6"},
		{"no format", `"format": 6,`, ``, `document: got no field "format", want it`},
		{"unknown field", `"threads": 4`, `"threads": 4, "colour": "red"`, `document: got field "colour", want one of`},
		{"unknown field of a value", `"id": 0,`, `"id": 0, "alias": 3,`, `values[0]: got field "alias", want one of`},
		{"field in another case", `"model"`, `"Model"`, `document: got field "Model", want one of`},
		{"field twice", `"io_bytes": 12328`, `"io_bytes": 12328, "io_bytes": 1`, `document: got field "io_bytes" a second time`},
		{"missing field", `"space": "input", `, ``, `values[0]: got no field "space", want it`},
		{"null", `"copies": []`, `"copies": null`, `copies: got null, want a list`},
		{"list for object", `"peak": {"step": 4, "bytes": 196608, "live": [2, 4, 5]}`, `"peak": []`, `peak: got a list, want an object`},
		{"number for string", `"model": "sha256:9f2c"`, `"model": 7`, `model: got 7, want a string`},
		{"string for number", `"threads": 4`, `"threads": "4"`, `threads: got "4", want a whole number`},
		{"bool for number", `"threads": 4`, `"threads": true`, `threads: got true, want a whole number`},
		{"fraction", `"threads": 4`, `"threads": 4.0`, `threads: got 4.0, want a whole number`},
		{"negative", `"offset": 131072`, `"offset": -64`, `values[5].offset: got -64, want a whole number from 0`},
		{"past int64", `"arena_bytes": 196608`, `"arena_bytes": 99999999999999999999`, `arena_bytes: got 99999999999999999999, want a whole`},
		{"total too large", `"weight_bytes": 45000`, `"weight_bytes": 4611686018427387904`, `weight_bytes: got 4611686018427387904, want 0 or more, and a total`},
		{"value above the arena", `"offset": 131072`, `"offset": 131136`, `values[5]: end: got 65536 bytes at offset 131136, want them within the arena's 196608`},
		{"offset that overflows", `"offset": 131072`, `"offset": 4611686018427387904`, `values[5]: bytes: got 65536 at offset 4611686018427387904`},
		{"id twice", `"id": 5`, `"id": 4`, `values[5].id: got 4, want 0 or more, and every id once`},
		{"call twice", `"call": 8`, `"call": 7`, `steps[8].call: got 7 a second time`},
		{"read of no value", `"reads": [2, 5]`, `"reads": [2, 50]`, `steps[5].reads[1]: got id 50, want that of a value`},
		{"unknown space", `"space": "weight"`, `"space": "attic"`, `values[10].space: got "attic", want one of`},
		{"unknown kind", `"kind": "view"`, `"kind": "guess"`, `in_place[3].kind: got "guess", want one of`},
		{"life backwards", `"start": 9, "end": 12`, `"start": 12, "end": 9`, `values[5]: life: got [12,9)`},
		{"life of no time", `"start": 9, "end": 12`, `"start": 9, "end": 9`, `values[5]: life: got [9,9)`},
		{"life past the run", `"start": 17, "end": 20`, `"start": 17, "end": 21`, `values[9]: life: got [17,21)`},
		{"scratch of a step", `"call": 2, "op": "conv", "node": "/block/conv1", "scratch": 9216`,
			`"call": 2, "op": "conv", "node": "/block/conv1", "scratch": 18433`, `steps[2].scratch: got 18433, want 0 to scratch_per_thread = 18432`},
		{"scratch sum", `"threads": 4`, `"threads": 5`, `scratch_bytes: got 73728, want scratch_per_thread × threads = 18432 × 5`},
		{"no threads", `"threads": 4`, `"threads": 0`, `threads: got 0, want at least 1`},
		{"bound above the arena", `"lower_bound_bytes": 196608`, `"lower_bound_bytes": 196609`, `lower_bound_bytes: got 196609, want 0 to arena_bytes`},
		{"peak step", `{"step": 4`, `{"step": 9`, `peak.step: got 9, want the index of one of 9 steps`},
		{"peak bytes", `"bytes": 196608, "live"`, `"bytes": 196609, "live"`, `peak.bytes: got 196609, want 0 to arena_bytes`},
		{"peak without value", `[2, 4, 5]`, `[2, 4, 50]`, `peak.live[2]: got id 50`},
		{"peak with value twice", `[2, 4, 5]`, `[2, 4, 4]`, `peak.live[2]: got id 4`},
		{"peak outside the arena", `[2, 4, 5]`, `[2, 4, 10]`, `peak.live[2]: got id 10`},
		{"peak with dead value", `[2, 4, 5]`, `[2, 4, 6]`, `peak.live[2]: got id 6 with the life [11,14)`},
		{"packed below nothing", `"unloaded": 640`, `"unloaded": -640`, `packed[0].unloaded: got -640, want a whole number from 0`},
		{"cut off", `"peak": {"step": 4, "bytes": 196608, "live": [2, 4, 5]}` + "\n}", `"peak": {"step": 4`, `got the end of the text`},
		{"not json", `"steps": [`, `"steps": ]`, `json at byte`},
		{"step that moves nothing", `"scratch": 9216`, `"scratch": 9216, "moved": 0`, `moved: got 0, want another value or no such field`},
		{"input that is not donated", `"type": "f32[1,3,32,32]"}`, `"type": "f32[1,3,32,32]", "donated": false}`, `shapes[0].donated: got false, want another value or no such field`},
		{"donated by a word", `"type": "f32[1,3,32,32]"}`, `"type": "f32[1,3,32,32]", "donated": "yes"}`, `shapes[0].donated: got "yes", want true or false`},
		{"two documents", "[2, 4, 5]}\n}", "[2, 4, 5]}\n} {}", `want one document`},
	})
}

// Strides are those of a box in row-major order, and are left out where there
// are none.
func TestReadJSONRejectsStrides(t *testing.T) {
	most := `"type": "f32[2,1,8]", "space": "arena", "offset": 96, "size": 64, "strides": [32, 8, 1]`
	with := func(old, new string) string { return strings.Replace(most, old, new, 1) }
	rejectsEdits(t, "strided", []edit{
		{"none", most, with(`[32, 8, 1]`, `[]`), `values[2].strides: got an empty list, want another value or no such field`},
		{"null", most, with(`[32, 8, 1]`, `null`), `values[2].strides: got null, want a list`},
		{"twice", most, with(`"strides"`, `"strides": [32, 8, 1], "strides"`), `values[2]: got field "strides" a second time`},
		{"of fewer axes", most, with(`[32, 8, 1]`, `[32, 1]`), `values[2].strides: got 2, want one for each of the 3 axes`},
		{"of more axes", most, with(`[32, 8, 1]`, `[64, 32, 8, 1]`), `values[2].strides: got 4, want one for each of the 3 axes`},
		{"of a contiguous value", most, with(`[32, 8, 1]`, `[8, 8, 1]`), `values[2].strides: got [8 8 1], want none for a contiguous value`},
		{"of a contiguous value, with any stride of one element", most, with(`[32, 8, 1]`, `[8, 99, 1]`), `values[2].strides: got [8 99 1], want none`},
		{"rows that overlap", most, with(`[32, 8, 1]`, `[7, 8, 1]`), `values[2].strides: axis 0: got 7 elements from one to the next, want at least 8`},
		{"elements that overlap", most, with(`[32, 8, 1]`, `[32, 8, 0]`), `values[2].strides: axis 2: got 0 elements from one to the next, want at least 1`},
		{"one element that overlaps", most, with(`[32, 8, 1]`, `[32, 0, 1]`), `values[2].strides: axis 1: got 0`},
		{"in the order of columns", most, with(`[32, 8, 1]`, `[1, 2, 2]`), `values[2].strides: axis 0: got 1 elements from one to the next, want at least 15`},
		{"past the arena", most, with(`[32, 8, 1]`, `[97, 8, 1]`), `values[2]: end: got 420 bytes at offset 96, want them within the arena's 512`},
		{"past any space", most, with(`[32, 8, 1]`, `[4611686018427387903, 8, 1]`), `values[2].strides: axis 0: got 4611686018427387903`},
		{"a sum past any space", most, with(`[32, 8, 1]`, `[1152921504606846976, 8, 164703072086692425]`), `values[2].strides: axis`},
		{"negative", most, with(`[32, 8, 1]`, `[-32, 8, 1]`), `values[2].strides[0]: got -32, want a whole number from 0`},
		{"of a type without size", most, with(`f32[2,1,8]`, `f32[2,n,8]`), `values[2].strides: got 64 bytes of type "f32[2,n,8]", want strides only of elements of whole bytes`},
		{"of half bytes", most, with(`"f32[2,1,8]", "space": "arena", "offset": 96, "size": 64`, `"i4[2,1,8]", "space": "arena", "offset": 96, "size": 8`), `want strides only of elements of whole bytes`},
		{"of no elements", most, with(`f32[2,1,8]`, `f32[2,0,8]`), `want strides only of elements of whole bytes, in a known number`},
		{"of a scalar", most, with(`f32[2,1,8]`, `f32[]`), `want strides only`},
		{"of a constant", most, with(`"arena"`, `"constant"`), `values[2].strides: got [32 8 1] for a constant, want none`},
		{"of a value without bytes of the document", most, with(`"space": "arena", "offset": 96, "size": 64`, `"space": "own", "offset": 0, "size": 0`), `values[2].strides: got 0 bytes`},
	})
	p := fixture(t, "strided")
	p.Values[0].Strides = []int64{}
	if err := p.Validate(); !errors.Is(err, plan.ErrDocument) || strings.Count(err.Error(), "invalid plan") != 1 {
		t.Errorf("an empty list of strides: got %v, want ErrDocument, once", err)
	}
}

// A value with strides takes the bytes from its first to behind its last.
func TestExtent(t *testing.T) {
	for _, test := range []struct {
		typ     string
		strides []int64
		size    int64
		want    int64
	}{
		{"f32[2,3,8]", nil, 192, 192},
		{"f32[2,3,8]", []int64{32, 8, 1}, 192, 4 * (1 + 32 + 16 + 7)},
		{"f64[2,1,4]", []int64{32, 4, 1}, 64, 8 * (1 + 32 + 3)},
		{"f16[3]", []int64{5}, 6, 2 * 11},
		{"f32[0,3]", nil, 0, 0},
		{"i4[5]", nil, 3, 3},
	} {
		v := plan.Value{Type: test.typ, Size: test.size, Strides: test.strides}
		if got := v.Extent(); got != test.want {
			t.Errorf("%s with strides %v: got %d bytes, want %d", test.typ, test.strides, got, test.want)
		}
	}
}

// An edit replaces old by new in the text of a document, which is then refused
// with an error that contains want.
type edit struct{ name, old, new, want string }

func rejectsEdits(t *testing.T, name string, edits []edit) {
	t.Helper()
	text := string(written(t, fixture(t, name).WriteJSON))
	for _, test := range edits {
		if strings.Count(text, test.old) == 0 {
			t.Fatalf("%s: the fixture has no %s", test.name, test.old)
		}
		p, err := plan.ReadJSON(strings.NewReader(strings.Replace(text, test.old, test.new, 1)))
		if !errors.Is(err, plan.ErrDocument) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want ErrDocument with %q", test.name, err, test.want)
		}
		if p != nil {
			t.Errorf("%s: got a plan beside the error", test.name)
		}
	}
}

func TestReadJSONPassesOnReadErrors(t *testing.T) {
	lost := errors.New("connection lost")
	_, err := plan.ReadJSON(io.MultiReader(strings.NewReader(`{"format": 6,`), iotest.ErrReader(lost)))
	if !errors.Is(err, lost) || errors.Is(err, plan.ErrDocument) {
		t.Errorf("got %v, want %v alone", err, lost)
	}
}

// A contradiction that JSON cannot express is caught before it is written.
func TestInvalidPlanIsNotWritten(t *testing.T) {
	p := fixture(t, "residual")
	p.Values[3].Offset = -64
	for name, write := range map[string]func(io.Writer) error{"json": p.WriteJSON, "report": p.Report, "svg": p.WriteSVG} {
		var out bytes.Buffer
		if err := write(&out); !errors.Is(err, plan.ErrDocument) || out.Len() > 0 {
			t.Errorf("%s: got %v and %d bytes, want ErrDocument and none", name, err, out.Len())
		}
	}
}

// The strict form holds for documents that other documents carry.
func TestPlanInsideAnotherDocument(t *testing.T) {
	type carrier struct {
		Plan *plan.Plan `json:"plan"`
	}
	want := carrier{fixture(t, "hostile")}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got carrier
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, got.Plan.WriteJSON), written(t, want.Plan.WriteJSON)) {
		t.Error("got another plan back")
	}
	text = bytes.Replace(text, []byte(`"threads"`), []byte(`"Threads"`), 1)
	if err := json.Unmarshal(text, &got); !errors.Is(err, plan.ErrDocument) {
		t.Errorf("got %v, want ErrDocument", err)
	}
}

func TestTotal(t *testing.T) {
	if got, want := fixture(t, "residual").Total(), int64(2*(196608+73728+12328)+45000); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// A plan that ReadJSON accepts can be written, read again, reported and drawn,
// and stays the same.
func FuzzReadJSON(f *testing.F) {
	for _, name := range []string{"residual", "hostile", "empty", "strided"} {
		var text bytes.Buffer
		if err := fixture(f, name).WriteJSON(&text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := plan.ReadJSON(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, plan.ErrDocument) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want one line of ErrDocument", err)
			}
			return
		}
		again, err := plan.ReadJSON(bytes.NewReader(written(t, p.WriteJSON)))
		if err != nil {
			t.Fatalf("reading what was written: %v", err)
		}
		if !reflect.DeepEqual(p, again) {
			t.Fatalf("got %+v, want %+v", again, p)
		}
		shapes(t, written(t, p.WriteSVG))
		for _, line := range strings.Split(string(written(t, p.Report)), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("report: got a control character in %q", line)
			}
		}
	})
}
