package protobuf_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

const text = `
syntax = "proto3"; // a comment
package a.b;
message Outer {
  message Inner { int32 x = 1; repeated Inner more = 2; }
  enum Colour { RED = 0; BLUE = 7; }
  string s = 1;
  bytes b = 2;
  repeated int64 list = 3;
  map<string, Inner> by_name = 4;
  map<uint64, string> by_number = 5;
  oneof one { bool flag = 6; double d = 7; Inner in = 8; }
  Colour colour = 9;
  repeated Colour colours = 10;
  float f = 11;
  uint32 u = 12;
  repeated string words = 13;
  Side side = 20;
}
enum Side { LEFT = 0; RIGHT = 1; }
service Calls {
  rpc One(Outer) returns (Outer.Inner);
  rpc Many(stream Outer) returns (stream Outer) {}
}
`

func parse(t testing.TB) *protobuf.File {
	t.Helper()
	f, err := protobuf.Parse("test.proto", text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestBytes compares messages with bytes that another implementation wrote.
func TestBytes(t *testing.T) {
	m := parse(t).Message("Outer")
	for _, c := range []struct{ value, hex string }{
		{`{}`, ""},
		{`{"s":"","u":0,"colour":"RED","list":[]}`, ""}, // what is zero is left out
		{`{"s":"hi"}`, "0a026869"},
		{`{"b":"AP8="}`, "120200ff"},
		{`{"list":[1,-1,300]}`, "1801" + "18ffffffffffffffffff01" + "18ac02"},
		{`{"by_name":{"k":{"x":5}}}`, "2207" + "0a016b" + "12020805"},
		{`{"by_number":{"300":"v"}}`, "2a06" + "08ac02" + "120176"},
		{`{"flag":false}`, "3000"},
		{`{"d":1.5}`, "39000000000000f83f"},
		{`{"in":{"more":[{},{"x":-2}]}}`, "420f" + "1200" + "120b08feffffffffffffffff01"},
		{`{"colour":"BLUE","colours":["RED",7]}`, "4807" + "5000" + "5007"},
		{`{"f":-0.5,"u":4294967295}`, "5d000000bf" + "60ffffffff0f"},
		{`{"words":["","x"],"side":"RIGHT"}`, "6a00" + "6a0178" + "a00101"},
	} {
		var v map[string]any
		d := json.NewDecoder(strings.NewReader(c.value))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		data, err := m.Encode(v)
		if got := hex.EncodeToString(data); err != nil || got != c.hex {
			t.Errorf("%s: got %s, %v, want %s", c.value, got, err, c.hex)
		}
		back, err := m.Decode(data)
		if err != nil {
			t.Errorf("%s: %v", c.value, err)
		}
		if again, err := m.Encode(back); err != nil || hex.EncodeToString(again) != c.hex {
			t.Errorf("%s: got %v and %x, %v after reading it", c.value, back, again, err)
		}
	}
}

// TestDecode reads what may be written in several ways.
func TestDecode(t *testing.T) {
	m := parse(t).Message("Outer")
	for _, c := range []struct {
		hex  string
		want map[string]any
	}{
		{"1a0401ac0202" + "1805", map[string]any{"list": []any{int64(1), int64(300), int64(2), int64(5)}}}, // packed, and not
		{"3001" + "39000000000000f83f", map[string]any{"d": 1.5}},                                          // the last one of several
		{"42020801" + "42021200", map[string]any{"in": map[string]any{"x": int64(1), "more": []any{map[string]any{}}}}},
		{"2200" + "22030a0161", map[string]any{"by_name": map[string]any{"": map[string]any{}, "a": map[string]any{}}}},
		{"2a00", map[string]any{"by_number": map[string]any{"0": ""}}},
		{"4805", map[string]any{"colour": int64(5)}},
		{"9a0601ff" + "980601" + "990600000000000000009d0600000000", map[string]any{}}, // not declared
	} {
		data, _ := hex.DecodeString(c.hex)
		if got, err := m.Decode(data); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.hex, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"0a":                       "field 1: got a length of 0 bytes",
		"0a05616263":               "field 1: got a length of 5 bytes, want at most the 3",
		"0a01ff":                   "Outer.s: got a string that is not UTF-8",
		"0801":                     "Outer.s: got the wire type 0, want 2",
		"1801" + "1a01ff":          "Outer.list: got 1 bytes behind the last whole number",
		"1dffffffff":               "Outer.list: got the wire type 5",
		"0b":                       "field 1: got the wire type 3",
		"ffffffffffffffffffffff":   "got a tag that does not end",
		"00":                       "got the field number 0",
		"18ffffffffffffffffffff01": "field 3: got a number that does not end",
		"39000000":                 "field 7: got 3 bytes, want 8",
		"5d00":                     "field 11: got 1 bytes, want 4",
	} {
		data, _ := hex.DecodeString(text)
		if _, err := m.Decode(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	deep := []byte{}
	for range 100 {
		deep = protobuf.AppendBytes(nil, 2, deep)
	}
	if _, err := m.Decode(protobuf.AppendBytes(nil, 8, deep)); err == nil || !strings.Contains(err.Error(), "within each other") {
		t.Errorf("got %v for a message that is too deep", err)
	}
	for value, want := range map[string]string{
		`{"s":1}`: "Outer.s: got float64, want a string", `{"u":-1}`: "Outer.u: ", `{"u":4294967296}`: "invalid syntax", `{"flag":1}`: "got float64, want a bool", `{"b":"?"}`: "illegal base64",
		`{"list":1}`: "want a list", `{"list":[1.5]}`: "invalid syntax", `{"in":1}`: "want a message", `{"by_name":[]}`: "want a map", `{"by_number":{"x":""}}`: "invalid syntax", `{"colour":"GREEN"}`: `got "GREEN", want one of [RED BLUE]`,
	} {
		var v map[string]any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Encode(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	f := parse(t)
	for symbol, want := range map[string]bool{"a.b.Outer": true, "a.b.Outer.Inner": true, "a.b.Side": true, "a.b.Calls": true, "a.b.Calls.Many": true, "a.b.Calls.None": false, "a.b.None": false, "Outer": false, "a.b": false, "a.b.Callsx": false} {
		if f.Has(symbol) != want {
			t.Errorf("%s: got %t, want %t", symbol, !want, want)
		}
	}
	if m := f.Services[0].Methods[1]; m.Input.Name != "Outer" || !m.ClientStream || !m.ServerStream || f.Services[0].Name != "a.b.Calls" {
		t.Errorf("got %+v", m)
	}
	for text, want := range map[string]string{
		`syntax = "proto2";`:                         `got "\"proto2\"", want "proto3"`,
		`import "x.proto";`:                          `got "import", want message, enum or service`,
		`message A {`:                                `got "the end", want more`,
		`message A { int32 x = y; }`:                 `got "y", want a number`,
		`message A { Missing x = 1; }`:               `got the type Missing, which is not declared`,
		`message A { int32 x = 1; int32 y = 1; }`:    `got the number 1 twice`,
		`service S { rpc M(A) returns (A); }`:        `got a message that is not declared`,
		`message A { reserved 1; }`:                  `got`,
		`message A { optional int32 x = 1; } enum E`: `got`,
	} {
		if _, err := protobuf.Parse("x.proto", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// FuzzDecode wants no panic, and the same message from what it writes.
func FuzzDecode(f *testing.F) {
	m := parse(f).Message("Outer")
	for _, text := range []string{"0a026869120200ff1801", "22070a016b120205082a0608ac02120176", "3000420f1200120b08feffffffffffffffff01", "480750005d000000bf60ffffffff0f6a00a00101"} {
		data, _ := hex.DecodeString(text)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := m.Decode(data)
		if err != nil {
			return
		}
		written, err := m.Encode(v)
		if err != nil {
			t.Fatalf("%v of %v", err, v)
		}
		again, err := m.Decode(written)
		if err != nil {
			t.Fatalf("%v of %x", err, written)
		}
		// Zeros that were written are left out, and NaN is not equal to itself.
		if a, b := plain(v), plain(again); a != b {
			t.Fatalf("got %s, want %s", b, a)
		}
	})
}

// plain prints a value without what is zero.
func plain(v any) string {
	switch v := v.(type) {
	case map[string]any:
		parts := map[string]string{}
		for k, e := range v {
			if text := plain(e); text != "" || k == "flag" || k == "d" || k == "in" {
				parts[k] = text
			}
		}
		return fmt.Sprint(parts)
	case []any:
		if len(v) == 0 {
			return ""
		}
		var parts []string
		for _, e := range v {
			parts = append(parts, plain(e))
		}
		return fmt.Sprint(parts)
	case float64:
		if v == 0 && !math.Signbit(v) {
			return ""
		}
		return fmt.Sprint(v)
	case []byte:
		return string(v)
	}
	if v == int64(0) || v == uint64(0) || v == false || v == "RED" || v == "LEFT" {
		return ""
	}
	return fmt.Sprint(v)
}
