package serve

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// aConfig is a configuration as people write them.
const aConfig = `# of a classifier
name: "double"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [
  {
    name: "x"
    data_type: TYPE_FP32
    dims: [ 4 ]
  }
]
output { name: 'y', data_type: TYPE_FP32; dims: 4 }
dynamic_batching {
  preferred_batch_size: 4
  preferred_batch_size: [8]
  max_queue_delay_microseconds: 100
  default_queue_policy: < allow_timeout_override: true >
}
instance_group [{ count: 2 kind: KIND_CPU }]
model_warmup [{
  name: "zeros" batch_size: 2
  inputs { key: "x" value: { data_type: TYPE_FP32 dims: [4] zero_data: true } }
}]
version_policy: { all { } }
parameters { key: "note" value { string_value: "a \"b\"\n" "c" } }
optimization { graph { level: -1 } }
`

func TestProtoText(t *testing.T) {
	text, err := jsonOfProtoText([]byte(aConfig))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"double","platform":"onnxruntime_onnx","max_batch_size":8,
		"input":[{"name":"x","data_type":"TYPE_FP32","dims":[4]}],"output":[{"name":"y","data_type":"TYPE_FP32","dims":[4]}],
		"dynamic_batching":{"preferred_batch_size":[4,8],"max_queue_delay_microseconds":100,"default_queue_policy":{"allow_timeout_override":true}},
		"instance_group":[{"count":2,"kind":"KIND_CPU"}],
		"model_warmup":[{"name":"zeros","batch_size":2,"inputs":{"x":{"data_type":"TYPE_FP32","dims":[4],"zero_data":true}}}],
		"version_policy":{"all":{}},"parameters":{"note":{"string_value":"a \"b\"\nc"}},"optimization":{"graph":{"level":-1}}}`
	var got, wanted any
	if json.Unmarshal(text, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil || !reflect.DeepEqual(got, wanted) {
		t.Errorf("got %s\nwant %s", text, want)
	}

	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double/1/model.onnx": doubling(), "double/2/model.onnx": doubling(), "double/config.pbtxt": []byte(aConfig)})}, Memory: 1 << 30})
	wantCode(t, get(t, h.URL+"/v2/models/double/versions/1/config"), 200, `"preferred_batch_size":[4,8]`)
	m, err := s.use("double", "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.done()
	if m.account.instances != 2 || m.queue.most != 8 || m.stats.executions != 1 {
		t.Errorf("got %d instances, batches of %d, %d runs at first, want 2, 8 and 1", m.account.instances, m.queue.most, m.stats.executions)
	}
}

func TestWrongProtoText(t *testing.T) {
	for text, want := range map[string]string{
		`name`:                            `line 1: got the end, want ":" or "{"`,
		"\n\nname: ":                      `line 3: got the end, want a value`,
		`name: "a" name: "b"`:             `got name twice`,
		`name: ["a"]`:                     `name: got a list`,
		`name: "a`:                        `got "\"a", want a value`,
		`name: "\q"`:                      `want a string with escapes`,
		`input { name: "x"`:               `got the end, want the name of a field`,
		`input { name: "x" ]`:             `want the name of a field`,
		`dims: [1 2]`:                     `want "," or "]"`,
		`} name: "a"`:                     `want the name of a field`,
		`parameters { key: "a" }`:         `want entries with key and value`,
		`name: "a" @`:                     `got "@", want a field`,
		strings.Repeat("a {", 100):        `want the name of a field`,
		`dynamic_batching { a: [[[1]]] }`: `a: got a list`,
	} {
		if _, err := jsonOfProtoText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	dir := write(t, map[string][]byte{"m/1/model.onnx": doubling(), "m/config.pbtxt": []byte(`sequence_batching { }`)})
	if _, err := New(t.Context(), Config{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), `config.pbtxt: unknown field "sequence_batching"`) {
		t.Errorf("got %v, want the field that is not known", err)
	}
	dir = write(t, map[string][]byte{"m/1/model.onnx": doubling(), "m/config.pbtxt": nil, "m/config.json": []byte("{}")})
	if _, err := New(t.Context(), Config{Paths: []string{dir}}); err == nil || !strings.Contains(err.Error(), "want one of them") {
		t.Errorf("got %v, want a refusal of two configurations", err)
	}
}

// FuzzProtoText wants no panic, and JSON of everything that is read.
func FuzzProtoText(f *testing.F) {
	f.Add(aConfig)
	f.Add(`a: [1, -2.5e3, "x" 'y', { b < c: true > }]`)
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := jsonOfProtoText([]byte(text)); err == nil && !json.Valid(got) {
			t.Errorf("got %s, want JSON", got)
		}
	})
}
