package oip

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
)

func TestRequest(t *testing.T) {
	got, err := ParseRequest([]byte(` {"id":"caf\u00e9\ud83d\ude00","parameters":{"priority":2,"timeout":1500,"other":{"a":[1,"]"]},"binary_data_output":true},
		"inputs":[{"name":"a","shape":[2,0,3],"datatype":"FP32","parameters":{"binary_data_size":0}},
		          {"datatype":"BYTES","data":[["x"],["]"]],"shape":[2,1],"name":"b\n"}],
		"outputs":[{"name":"y"},{"name":"z","parameters":{"binary_data":false,"classification":3}}],"unknown":null} `))
	want := &Request{ID: "café😀", Binary: true, Priority: 2, Timeout: 1500 * time.Microsecond,
		Inputs:  []Input{{Name: "a", Type: dtype.F32, Shape: []int{2, 0, 3}, Size: 0}, {Name: "b\n", Type: dtype.String, Shape: []int{2, 1}, Data: []byte(`[["x"],["]"]]`), Size: -1}},
		Outputs: []Output{{Name: "y", Binary: true}, {Name: "z", Classes: 3}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestWrongRequests(t *testing.T) {
	input := func(s string) string { return `{"inputs":[` + s + `]}` }
	for text, want := range map[string]string{
		``:                    `got the end of the text, want "{"`,
		`[]`:                  `got "[" at byte 0, want "{"`,
		`{} x`:                `want the end of the text`,
		`{"id":"a`:            `want the end of a string`,
		`{"id":"\x"}`:         `got the escape "\\x"`,
		`{"id":"\u12"}`:       `want four hexadecimal digits`,
		`{"id":1}`:            `want a string`,
		`{"inputs":{}}`:       `want "["`,
		`{"inputs":[{}`:       `got an input without a name`,
		`{"a":[1}`:            `want "]"`,
		`{"a":`:               `want a value`,
		`{"id":"a" "b":1}`:    `want "," or "}"`,
		"{\"id\":\"a\x01\"}":  `want a string without control characters`,
		input(`{"name":"a"}`): `got no datatype`,
		input(`{"name":"a","datatype":"FP8","shape":[]}`):                                                          `got the datatype "FP8"`,
		input(`{"name":"a","datatype":"FP32"}`):                                                                    `got no shape`,
		input(`{"name":"a","datatype":"FP32","shape":[-1]}`):                                                       `got the size -1, want 0 to`,
		input(`{"name":"a","datatype":"FP32","shape":[1.5]}`):                                                      `want an integer of 64 bits`,
		input(`{"name":"a","datatype":"FP32","shape":[1],"data":[1],"parameters":{"binary_data_size":4}}`):         `want one of them`,
		input(`{"name":"a","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":-4}}`):                   `binary_data_size: got -4`,
		input(`{"name":"a","datatype":"FP32","shape":[1],"parameters":{"shared_memory_offset":4}}`):                `want a shared_memory_region with it`,
		input(`{"name":"a","datatype":"FP32","shape":[1],"data":[1],"parameters":{"shared_memory_region":"r"}}`):   `got elements and shared_memory_region`,
		input(`{"name":"a","datatype":"FP32","shape":[1],"parameters":{"shared_memory_byte_size":-1}}`):            `shared_memory_byte_size: got -1`,
		`{"parameters":{"timeout":-1}}`:                                                                            `timeout: got -1`,
		`{"parameters":{"timeout":9223372036854775807}}`:                                                           `timeout: got`,
		`{"parameters":{"priority":-1}}`:                                                                           `priority: got -1`,
		`{"parameters":{"binary_data_output":1}}`:                                                                  `want true or false`,
		`{"outputs":[{"name":"y","parameters":{"classification":-2}}]}`:                                            `classification: got -2`,
		`{"outputs":[{"parameters":{}}]}`:                                                                          `got an output without a name`,
		`{"a":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`:                                          `got more than 64 arrays and objects`,
		`{"outputs":[` + strings.Repeat(`{"name":"y"},`, maxTensors) + `{"name":"y"}]}`:                            `got more than 4096 outputs`,
		input(`{"name":"a","datatype":"FP32","shape":[` + strings.Repeat("1,", 64) + `1]}`):                        `got more than 64 dimensions`,
		input(strings.TrimSuffix(strings.Repeat(`{"name":"a","datatype":"FP32","shape":[]},`, maxTensors+1), ",")): `got more than 4096 inputs`,
	} {
		_, err := ParseRequest([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrMessage) {
			t.Errorf("%.80s: got %v, want %s", text, err, want)
		}
	}
}

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int
		fault bool
	}{{nil, 1, false}, {[]int{2, 3}, 6, false}, {[]int{1 << 30, 1 << 30, 0}, 0, true}, {[]int{0, 1 << 30, 1 << 30}, 0, true}, {[]int{1 << 31, 1 << 31}, 0, true}, {[]int{-1}, 0, true}} {
		got, err := Elements(c.shape)
		if got != c.want || (err != nil) != c.fault {
			t.Errorf("%v: got %d, %v, want %d", c.shape, got, err, c.want)
		}
	}
}

// floats are the types that JSON has as numbers with fractions.
var floats = []dtype.DType{dtype.F16, dtype.BF16, dtype.F32, dtype.F64}

// TestValuesGoRound writes the elements of every type as JSON and reads the
// same bytes from it.
func TestValuesGoRound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range datatypes {
		if d == dtype.String {
			continue
		}
		for range 50 {
			n := r.IntN(9)
			data := make([]byte, n*d.Size())
			for i := range data {
				data[i] = byte(r.Uint32())
				if d == dtype.Bool {
					data[i] &= 1
				}
			}
			var text bytes.Buffer
			a := Answer{Outputs: []Result{{Type: d, Shape: []int{n}, Size: -1, Data: data}}}
			if _, err := a.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			list := text.Bytes()[bytes.Index(text.Bytes(), []byte(`"data":`))+7 : text.Len()-3]
			got := make([]byte, len(data))
			if err := Fill(got, d, n, list); err != nil {
				t.Fatalf("%s: %s: %v", d, list, err)
			}
			if !bytes.Equal(got, data) && !isNaNs(d, got, data) {
				t.Fatalf("%s: %s: got %x, want %x", d, list, got, data)
			}
		}
	}
}

// isNaNs reports whether elements differ only in the bits of a NaN.
func isNaNs(d dtype.DType, a, b []byte) bool {
	if !slices.Contains(floats, d) {
		return false
	}
	var x, y []byte
	for i := range len(a) / d.Size() {
		x, y = appendElement(x, d, a[i*d.Size():]), appendElement(y, d, b[i*d.Size():])
	}
	return bytes.Equal(x, y) && bytes.Contains(x, []byte("NaN"))
}

func TestWrongValues(t *testing.T) {
	for _, c := range []struct {
		d          dtype.DType
		n          int
		data, want string
	}{
		{dtype.F32, 2, "[1]", "got 1 elements, want 2"},
		{dtype.F32, 1, "[1,2]", "got more than 1 elements"},
		{dtype.F32, 1, "[[1],2]", "got more than 1 elements"},
		{dtype.F32, 1, "1", "want an array of elements"},
		{dtype.F32, 1, "[,1]", "want an array of elements"},
		{dtype.F32, 1, "[1,]", "want an array of elements"},
		{dtype.F32, 1, "[1][2]", "want the end of the text"},
		{dtype.F32, 1, "[[1]", "want an array of elements"},
		{dtype.F32, 1, "[one]", `got "one", want a number`},
		{dtype.F32, 1, "[+1]", `got "+1", want a number`},
		{dtype.F32, 1, `["1"]`, "want a value"},
		{dtype.U8, 1, "[256]", `got "256", want an integer that UINT8 holds`},
		{dtype.I8, 1, "[-129]", `got "-129", want an integer that INT8 holds`},
		{dtype.I64, 1, "[1.0]", `got "1.0", want an integer that INT64 holds`},
		{dtype.U64, 1, "[-1]", `got "-1", want an integer that UINT64 holds`},
		{dtype.Bool, 1, "[2]", `got "2", want true or false`},
	} {
		err := Fill(make([]byte, 8*c.n), c.d, c.n, []byte(c.data))
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrMessage) {
			t.Errorf("%s %s: got %v, want %s", c.d, c.data, err, c.want)
		}
	}
	if err := Fill(nil, dtype.F32, 0, []byte(" [ [ ] , [ ] ] ")); err != nil {
		t.Errorf("no elements: got %v", err)
	}
}

func TestStrings(t *testing.T) {
	want := []string{"", "a\"b", "é\n", "\x00"}
	var data []byte
	text := []byte("[")
	for i, s := range want {
		if i > 0 {
			text = append(text, ',')
		}
		text = AppendString(text, s)
		data = AppendBinaryString(data, s)
	}
	text = append(text, ']')
	for _, read := range []func() ([]string, error){
		func() ([]string, error) { return Strings(len(want), text) },
		func() ([]string, error) { return BinaryStrings(len(want), data) },
	} {
		if got, err := read(); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for i := range data {
		if _, err := BinaryStrings(len(want), data[:i]); err == nil {
			t.Errorf("the first %d of %d bytes: got no error", i, len(data))
		}
	}
	if _, err := BinaryStrings(len(want), append(data, 0)); err == nil {
		t.Error("one byte more: got no error")
	}
	if got := string(AppendString(nil, "\xff")); got != `"`+"\ufffd"+`"` {
		t.Errorf("bytes that are not UTF-8: got %q", got)
	}
}

// reference reads a request with encoding/json. ok is false where that refuses
// it.
func reference(text []byte) (inputs []Input, id string, ok bool) {
	var whole map[string]json.RawMessage
	if json.Unmarshal(text, &whole) != nil {
		return nil, "", false
	}
	if v, has := whole["id"]; has && json.Unmarshal(v, &id) != nil {
		return nil, "", false
	}
	var list []map[string]json.RawMessage
	if v, has := whole["inputs"]; has && json.Unmarshal(v, &list) != nil {
		return nil, "", false
	}
	for _, fields := range list {
		in := Input{Size: -1}
		var name string
		if json.Unmarshal(fields["name"], &in.Name) != nil || json.Unmarshal(fields["shape"], &in.Shape) != nil || json.Unmarshal(fields["datatype"], &name) != nil {
			return nil, "", false
		}
		in.Type = datatypes[name]
		inputs = append(inputs, in)
	}
	return inputs, id, true
}

// FuzzRequest compares what is accepted with encoding/json, and reads the
// elements: nothing panics, and what both accept is the same.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"id":"1","inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2.5e3]}]}`), []byte{3, 0, 0, 0, 'a', 'b', 'c'})
	f.Add([]byte(`{"inputs":[{"name":"x","datatype":"BYTES","shape":[1,2],"data":[["\u00e9","b"]]}],"outputs":[{"name":"y"}]}`), []byte{})
	f.Add([]byte(`{"inputs":[{"name":"x","datatype":"INT64","shape":[],"parameters":{"binary_data_size":8}}]}`), []byte{255, 255, 255, 255})
	f.Add([]byte(`{"parameters":{"timeout":1},"inputs":[{"name":"x","datatype":"BOOL","shape":[1],"data":[true]}]}`), []byte{1})
	f.Fuzz(func(t *testing.T, text, section []byte) {
		_, _ = BinaryStrings(len(section)/3, section)
		r, err := ParseRequest(text)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatalf("got %v, want an ErrMessage", err)
			}
			return
		}
		if want, id, ok := reference(text); ok {
			if len(want) != len(r.Inputs) || strings.ToValidUTF8(r.ID, "\ufffd") != id && !strings.ContainsRune(id, '\ufffd') {
				t.Fatalf("got %d inputs and %q, want %d and %q", len(r.Inputs), r.ID, len(want), id)
			}
			for i, in := range r.Inputs {
				if in.Type != want[i].Type || !slices.Equal(in.Shape, want[i].Shape) {
					t.Fatalf("got %+v, want %+v", in, want[i])
				}
			}
		}
		for _, in := range r.Inputs {
			n, err := Elements(in.Shape)
			if err != nil || in.Data == nil || n > 1<<12 {
				continue
			}
			if in.Type == dtype.String {
				if list, err := Strings(n, in.Data); err == nil && len(list) != n {
					t.Fatalf("got %d strings, want %d", len(list), n)
				}
				continue
			}
			dst := make([]byte, n*in.Type.Size())
			if Fill(dst, in.Type, n, in.Data) == nil {
				compareElements(t, in, dst)
			}
		}
	})
}

// compareElements compares elements with what encoding/json and strconv make of
// them.
func compareElements(t *testing.T, in Input, dst []byte) {
	d := json.NewDecoder(bytes.NewReader(in.Data))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return // NaN and the like
	}
	var flat []any
	var walk func(v any)
	walk = func(v any) {
		list, ok := v.([]any)
		if !ok {
			flat = append(flat, v)
		}
		for _, e := range list {
			walk(e)
		}
	}
	walk(v)
	if len(flat)*in.Type.Size() != len(dst) {
		t.Fatalf("%s: got %d bytes of %d elements", in.Data, len(dst), len(flat))
	}
	for i, e := range flat {
		n, ok := e.(json.Number)
		if !ok || in.Type != dtype.F32 {
			continue
		}
		want, _ := strconv.ParseFloat(n.String(), 32)
		if got := math.Float32frombits(binary.LittleEndian.Uint32(dst[4*i:])); got != float32(want) {
			t.Fatalf("%s: element %d: got %v, want %v", in.Data, i, got, want)
		}
	}
}

// countingWriter remembers the longest piece.
type countingWriter struct{ longest, n int }

func (c *countingWriter) Write(p []byte) (int, error) {
	c.longest, c.n = max(c.longest, len(p)), c.n+len(p)
	return len(p), nil
}

// TestLongAnswer wants an answer of many elements in pieces.
func TestLongAnswer(t *testing.T) {
	var w countingWriter
	a := Answer{Model: "m", Version: "1", ID: "i", Outputs: []Result{{Name: "y", Type: dtype.F32, Shape: []int{1 << 18}, Size: -1, Data: make([]byte, 4<<18)}}}
	if n, err := a.WriteTo(&w); err != nil || n != int64(w.n) || w.longest > 2*piece {
		t.Errorf("got %d bytes, pieces of up to %d, %v, want pieces of about %d", n, w.longest, err, piece)
	}
}

func ExampleParseRequest() {
	r, err := ParseRequest([]byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1, 2.5]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	in := r.Inputs[0]
	data := make([]byte, 8)
	fmt.Println(in.Name, in.Shape, Fill(data, in.Type, 2, in.Data), math.Float32frombits(binary.LittleEndian.Uint32(data[4:])))
	// Output: x [2] <nil> 2.5
}

func BenchmarkFill(b *testing.B) {
	text := []byte("[")
	for i := range 150528 {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendFloat(text, math.Sin(float64(i)), 'g', 9, 64)
	}
	text = append(text, ']')
	dst := make([]byte, 4*150528)
	b.ReportAllocs()
	for b.Loop() {
		if err := Fill(dst, dtype.F32, 150528, text); err != nil {
			b.Fatal(err)
		}
	}
}
