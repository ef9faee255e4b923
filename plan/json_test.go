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
	text := string(written(t, fixture(t, "residual").WriteJSON))
	for _, test := range []struct{ name, old, new, want string }{
		{"another format", `"format": 4`, `"format": 5, "novelty": true`, "format: got 5, want 4"},
		{"no format", `"format": 4,`, ``, `document: got no field "format", want it`},
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
		{"two documents", "[2, 4, 5]}\n}", "[2, 4, 5]}\n} {}", `want one document`},
	} {
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
	_, err := plan.ReadJSON(io.MultiReader(strings.NewReader(`{"format": 4,`), iotest.ErrReader(lost)))
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
	for _, name := range []string{"residual", "hostile", "empty"} {
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
