package serve

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/python/pythontest"
)

// encoder returns the vector k, k*k/10, 0, 0 for each token k of the mask.
func encoder(outputs ...string) []byte {
	const words = 2000
	table := make([]float32, 4*words)
	for i := range words {
		table[4*i], table[4*i+1] = float32(i), float32(i*i)/10
	}
	var g onnxtest.Graph
	g.Weight("table", onnxtest.F32, floatBytes(table), words, 4)
	g.Input("input_ids", onnxtest.I64, "batch", "sequence")
	g.Input("attention_mask", onnxtest.I64, "batch", "sequence")
	g.Ints("axis", 2)
	g.Ints("side", 1)
	g.Node("Gather", []string{"table", "input_ids"}, []string{"rows"}, onnxtest.Int("axis", 0))
	g.Node("Cast", []string{"attention_mask"}, []string{"mask"}, onnxtest.Int("to", onnxtest.F32))
	g.Node("Unsqueeze", []string{"mask", "axis"}, []string{"column"})
	g.Node("Mul", []string{"rows", "column"}, []string{"last_hidden_state"})
	g.OutputOf("last_hidden_state", onnxtest.F32, "batch", "sequence", 4)
	if slices.Contains(outputs, "sentence_embedding") {
		g.Node("ReduceMax", []string{"last_hidden_state", "side"}, []string{"sentence_embedding"}, onnxtest.Int("keepdims", 0))
		g.OutputOf("sentence_embedding", onnxtest.F32, "batch", 4)
	}
	return g.File()
}

func wordpiece(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "tokenizer", "testdata", "wordpiece.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// vectors is an answer with embeddings.
type vectors struct {
	Data []struct {
		Index     int
		Embedding json.RawMessage
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
	}
}

func embed(t testing.TB, url string, pairs ...any) (list [][]float32, usage int, got reply) {
	t.Helper()
	_, got = ask(t, url+"/v1/embeddings", pairs...)
	var v vectors
	if err := json.Unmarshal([]byte(got.text), &v); err != nil {
		t.Fatal(err)
	}
	for i, d := range v.Data {
		var numbers []float32
		var text string
		if json.Unmarshal(d.Embedding, &text) == nil {
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Error(err)
			}
			numbers = floatsOf(b)
		} else if err := json.Unmarshal(d.Embedding, &numbers); err != nil || d.Index != i {
			t.Errorf("got vector %d as %s: %v", d.Index, d.Embedding, err)
		}
		list = append(list, numbers)
	}
	return list, v.Usage.Prompt, got
}

// TestEmbeddings compares with what the encoder is defined to return.
func TestEmbeddings(t *testing.T) {
	tok := wordpiece(t)
	config := func(text string) map[string][]byte {
		return map[string][]byte{"model.onnx": encoder(), "tokenizer.json": tok, "config.json": []byte(text)}
	}
	files := in("mean", config(`{}`), in("cls", config(`{"parameters":{"pooling":"cls","normalize":"false"}}`)), in("last", config(`{"parameters":{"pooling":"last","normalize":false},"max_batch_size":4,"dynamic_batching":{}}`)))
	for name, data := range files {
		if rest, ok := strings.CutPrefix(name, "mean/"); ok && (strings.HasPrefix(rest, "cls/") || strings.HasPrefix(rest, "last/")) {
			delete(files, name)
			files[rest] = data
		}
	}
	files["first/model.onnx"], files["first/tokenizer.json"] = encoder(), tok
	files["first/1_Pooling/config.json"] = []byte(`{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`)
	files["own/model.onnx"], files["own/tokenizer.json"] = encoder("sentence_embedding"), tok
	s, h := start(t, Config{Paths: []string{write(t, files)}, Memory: 1 << 30})
	ids := []float64{5, 9, 7}
	const mean = (2.5 + 8.1 + 4.9) / 3
	for name, want := range map[string][]float64{
		"mean": {7 / math.Hypot(7, mean), mean / math.Hypot(7, mean), 0, 0}, "cls": {5, 2.5, 0, 0}, "last": {7, 4.9, 0, 0},
		"first": {5 / math.Hypot(5, 2.5), 2.5 / math.Hypot(5, 2.5), 0, 0}, "own": {9 / math.Hypot(9, 8.1), 8.1 / math.Hypot(9, 8.1), 0, 0},
	} {
		for _, form := range []string{"float", "base64"} {
			list, usage, got := embed(t, h.URL, "model", name, "input", [][]float64{ids, {5}}, "encoding_format", form)
			if got.code != 200 || len(list) != 2 || usage != 4 {
				t.Fatalf("%s: got %d and %s, want two vectors", name, got.code, got.text)
			}
			for i, x := range list[0] {
				if math.Abs(float64(x)-want[i]) > 1e-6 {
					t.Errorf("%s: got %v, want %v", name, list[0], want)
					break
				}
			}
		}
	}
	list, _, got := embed(t, h.URL, "model", "mean", "input", ids, "dimensions", 1)
	if len(list) != 1 || len(list[0]) != 1 || list[0][0] != 1 {
		t.Errorf("got %s, want one number of length 1", got.text)
	}
	texts, _, _ := embed(t, h.URL, "model", "mean", "input", []string{"the quick brown fox", "a tensor"})
	one, usage, _ := embed(t, h.URL, "model", "mean", "input", "a tensor")
	if len(texts) != 2 || len(one) != 1 || !slices.Equal(texts[1], one[0]) || usage < 3 {
		t.Errorf("got %v and %v of %d tokens, want the same vector of one text", texts, one, usage)
	}
	if m := generatorOf(t, s, "mean"); m != nil {
		t.Error("got an encoder that generates text")
	}
	// The model answers requests for inference, too.
	if got := post(t, h.URL+"/v2/models/mean/infer", `{"inputs":[{"name":"input_ids","shape":[1,1],"datatype":"INT64","data":[3]},{"name":"attention_mask","shape":[1,1],"datatype":"INT64","data":[1]}]}`, nil); got.code != 200 {
		t.Errorf("got %d and %s", got.code, got.text)
	}
}

// TestTextModels wants the models listed that the API has, and others not.
func TestTextModels(t *testing.T) {
	files := in("writes", characters(t))
	files["double.onnx"] = doubling()
	files["plain/model.onnx"], files["plain/tokenizer.json"] = files["writes/model.onnx"], files["writes/tokenizer.json"]
	files["plain/config.json"] = []byte(`{"parameters":{"generate":"false"}}`)
	files["versions/1/model.onnx"], files["versions/tokenizer.json"] = files["writes/model.onnx"], files["writes/tokenizer.json"]
	_, h := start(t, Config{Paths: []string{write(t, files)}, Memory: 1 << 30})
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal([]byte(get(t, h.URL+"/v1/models").text), &list); err != nil || len(list.Data) != 2 || list.Data[0].ID != "versions" || list.Data[1].ID != "writes" {
		t.Errorf("got %v, %v, want two models", list, err)
	}
	wantCode(t, get(t, h.URL+"/v1/models/writes"), 200, `"id":"writes"`)
	wantCode(t, get(t, h.URL+"/v1/models/double"), 404, `"code":"model_not_found"`)
	wantCode(t, get(t, h.URL+"/v1/files"), 404, `"type":"invalid_request_error"`)
	wantCode(t, post(t, h.URL+"/v2/models/writes/infer", `{"inputs":[]}`, nil), 501, "generates text")
	wantCode(t, post(t, h.URL+"/v2/models/plain/infer", `{"inputs":[]}`, nil), 400, "got no 'input_ids'")
	if _, got := ask(t, h.URL+"/v1/completions", "model", "versions", "prompt", "x"); got.code != 200 {
		t.Errorf("got %d and %s", got.code, got.text)
	}
	wantCode(t, get(t, h.URL+"/metrics"), 200, `tenure_generation_tokens_total{model="versions",version="1"} 16`)
	wantCode(t, get(t, h.URL+"/v2/models/versions/stats"), 200, `"generation_stats":{"prompt_tokens":1,"completion_tokens":16,"runs":16,"sequences":0,"max_length":1024,`)
	wantCode(t, get(t, h.URL+"/v2/models/versions/stats"), 200, `"inference_count":16`)
}

// TestBadConfigurations wants models refused that cannot be what is asked for.
func TestBadConfigurations(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"config.json", `{"parameters":{"generate":"maybe"}}`, `generate: got "maybe", want true or false`},
		{"config.json", `{"parameters":{"max_length":"0"}}`, `max_length: got "0", want 1 to`},
		{"config.json", `{"parameters":{"max_length":4000}}`, "got 4000, want at most the 2048 positions"},
		{"config.json", `{"parameters":{"pooling":"sum"}}`, "want mean, cls or last"},
		{"config.json", `{"parameters":{"state_bytes":100}}`, "states of a sequence of 2 tokens take"},
		{"config.json", `{"instance_group":[{"count":2}]}`, "got 2 runs at a time, want 1"},
		{"tokenizer_config.json", `{"chat_template":[{"name":"a","template":"b"}]}`, "want one of the name default"},
		{"tokenizer_config.json", `[]`, "tokenizer_config.json: json: cannot unmarshal array"},
		{"generation_config.json", `{"temperature":-1}`, "generation_config.json: temperature: got -1"},
		{"tokenizer.json", `{}`, "tokenizer.json"},
	} {
		files := characters(t)
		files["config.json"] = []byte(`{"parameters":{"generate":"true"}}`)
		files[c.name] = []byte(c.text)
		_, err := New(t.Context(), Config{Paths: []string{write(t, in("m", files))}, Memory: 1 << 30})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got error %v, want %q", c.name, c.text, err, c.want)
		}
	}
	// Such a model is served without text where nothing asks for it.
	odd := in("odd", characters(t))
	odd["odd/tokenizer.json"] = []byte(`{}`)
	var log bytes.Buffer
	_, h := start(t, Config{Paths: []string{write(t, odd)}, Memory: 1 << 30, Log: slog.New(slog.NewTextHandler(&log, nil))})
	wantCode(t, get(t, h.URL+"/v2/models/odd"), 200, "past_key_values.0.key")
	if !strings.Contains(log.String(), "is served without text") {
		t.Errorf("got the log %s, want a warning", log.String())
	}
	files := map[string][]byte{"m/model.onnx": doubling(), "m/config.json": []byte(`{"parameters":{"generate":true}}`)}
	if _, err := New(t.Context(), Config{Paths: []string{write(t, files)}, Memory: 1 << 30}); err == nil || !strings.Contains(err.Error(), "parameters: generate: got no tokenizer.json") {
		t.Errorf("got error %v, want that there is no tokenizer", err)
	}
}

// TestWrongTextRequests wants errors in the form of the API, with the field.
func TestWrongTextRequests(t *testing.T) {
	files := in("m", characters(t))
	files["silent/model.onnx"], files["silent/tokenizer.json"] = files["m/model.onnx"], files["m/tokenizer.json"]
	files["odd/model.onnx"], files["odd/tokenizer.json"] = files["m/model.onnx"], files["m/tokenizer.json"]
	files["odd/tokenizer_config.json"] = []byte(`{"chat_template":"{% include 'x' %}"}`)
	files["e/model.onnx"], files["e/tokenizer.json"] = encoder(), wordpiece(t)
	_, h := start(t, Config{Paths: []string{write(t, files)}, Memory: 1 << 30})
	chat := `"model":"m","messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		path, body string
		code       int
		param      string
		want       string
	}{
		{"completions", `{"model":"m","prompt":"x","temperature":3}`, 400, "temperature", "got 3, want 0 to 2"},
		{"completions", `{"model":"m","prompt":"x","temperature":"hot"}`, 400, "temperature", "want a number"},
		{"completions", `{"model":"m","prompt":"x","top_p":1.5}`, 400, "top_p", "got 1.5, want 0 to 1"},
		{"completions", `{"model":"m","prompt":"x","top_k":-5}`, 400, "top_k", "got -5, want 0 or more"},
		{"completions", `{"model":"m","prompt":"x","presence_penalty":9}`, 400, "presence_penalty", "want -2 to 2"},
		{"completions", `{"model":"m","prompt":"x","logit_bias":{"a":1}}`, 400, "logit_bias", "want the number of a token"},
		{"completions", `{"model":"m","prompt":"x","logit_bias":{"1":1000}}`, 400, "logit_bias", "want -100 to 100"},
		{"completions", `{"model":"m","prompt":"x","max_tokens":0}`, 400, "max_tokens", "got 0, want 1 or more"},
		{"completions", `{"model":"m","prompt":"x","n":0}`, 400, "n", "want 1 to 128"},
		{"completions", `{"model":"m","prompt":"x","n":1.5}`, 400, "n", "want a whole number"},
		{"completions", `{"model":"m","prompt":"x","seed":"a"}`, 400, "seed", "want a whole number"},
		{"completions", `{"model":"m","prompt":"x","stop":[""]}`, 400, "stop", "got a text of 0 bytes"},
		{"completions", `{"model":"m","prompt":"x","stop":5}`, 400, "stop", "want a text or a list"},
		{"completions", `{"model":"m","prompt":"x","echo":true}`, 400, "echo", "not supported: the prompt is not repeated"},
		{"completions", `{"model":"m","prompt":"x","best_of":5}`, 400, "best_of", "not supported"},
		{"completions", `{"model":"m","prompt":"x","suffix":"y"}`, 400, "suffix", "not supported"},
		{"completions", `{"model":"m","prompt":"x","logprobs":50}`, 400, "logprobs", "want 0 to 20"},
		{"completions", `{"model":"m","prompt":"x","stream_options":{"include_usage":true}}`, 400, "stream_options", "with stream alone"},
		{"completions", `{"model":"m","prompt":"x","speed":2}`, 400, "speed", "got the field speed, which is not supported"},
		{"completions", `{"model":"m","prompt":""}`, 400, "prompt", "without tokens"},
		{"completions", `{"model":"m","prompt":[]}`, 400, "prompt", "empty list"},
		{"completions", `{"model":"m","prompt":[5,1000]}`, 400, "prompt", "got the token 1000, want one of the 96"},
		{"completions", `{"model":"m","prompt":[-1]}`, 400, "prompt", "got the token -1"},
		{"completions", `{"model":"m","prompt":{"a":1}}`, 400, "prompt", "want a text, or a list"},
		{"completions", `{"model":"m","prompt":["a",5]}`, 400, "prompt", "got 5, want a text"},
		{"completions", `{"model":"m"}`, 400, "prompt", "got none"},
		{"completions", `{"prompt":"x"}`, 400, "model", "got none"},
		{"completions", `{"model":"other","prompt":"x"}`, 404, "model", "'other' is not found"},
		{"completions", `{"model":"e","prompt":"x"}`, 400, "model", "does not generate text"},
		{"completions", `[]`, 400, "", "no JSON object"},
		{"completions", `{"model":`, 400, "", "no JSON object"},
		{"completions", ``, 400, "", "no JSON object"},
		{"chat/completions", `{"model":"odd","messages":[{"role":"user","content":"x"}]}`, 400, "", "not supported: tokenizer_config.json: chat_template: line 1: got the statement include"},
		{"chat/completions", `{"model":"silent","messages":[{"role":"user","content":"x"}]}`, 400, "", "no chat_template"},
		{"chat/completions", `{` + chat + `,"tools":[{"type":"function"}]}`, 400, "tools", "answers are text"},
		{"chat/completions", `{` + chat + `,"response_format":{"type":"json_object"}}`, 400, "response_format", "answers are text"},
		{"chat/completions", `{` + chat + `,"top_logprobs":3}`, 400, "top_logprobs", "want logprobs with it"},
		{"chat/completions", `{` + chat + `,"logprobs":true,"top_logprobs":30}`, 400, "top_logprobs", "want 0 to 20"},
		{"chat/completions", `{"model":"m","messages":[]}`, 400, "messages", "want a list"},
		{"chat/completions", `{"model":"m","messages":[{"content":"x"}]}`, 400, "messages", "message 0: got no role"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user"}]}`, 400, "messages", "message 0: got no content"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "messages", `got a part of the type "image_url"`},
		{"embeddings", `{"model":"m","input":"x"}`, 400, "model", "makes no embeddings"},
		{"embeddings", `{"model":"e","input":"x","encoding_format":"hex"}`, 400, "encoding_format", "want float or base64"},
		{"embeddings", `{"model":"e","input":"x","dimensions":9}`, 400, "dimensions", "want at most the 4"},
		{"embeddings", `{"model":"e","input":"x","dimensions":0}`, 400, "dimensions", "want 1 or more"},
		{"embeddings", `{"model":"e","input":[[1,2],[]]}`, 400, "input", "without tokens"},
	} {
		got := post(t, h.URL+"/v1/"+c.path, c.body, nil)
		var a completionReply
		if err := json.Unmarshal([]byte(got.text), &a); err != nil || a.Error == nil || got.code != c.code || a.Error.Param != c.param || a.Error.Type != "invalid_request_error" || !strings.Contains(a.Error.Message, c.want) {
			t.Errorf("%s: got %d and %s, want %d, %q and %q", c.body, got.code, got.text, c.code, c.param, c.want)
		}
	}
	// What changes nothing is taken.
	for _, body := range []string{`{"model":"m","prompt":"x","user":"me","echo":false,"stop":null,"suffix":null,"best_of":1}`, `{"model":"m","prompt":["x","y"],"n":2,"best_of":2,"stop":"q","top_k":-1}`} {
		if got := post(t, h.URL+"/v1/completions", body, nil); got.code != 200 {
			t.Errorf("%s: got %d and %s", body, got.code, got.text)
		}
	}
	if got := post(t, h.URL+"/v1/chat/completions", `{`+chat+`,"tools":[],"tool_choice":"none","response_format":{"type": "text"},"store":false,"max_tokens":3}`, nil); got.code != 200 {
		t.Errorf("got %d and %s", got.code, got.text)
	}
}

// TestOpenAIClient runs the Python client of OpenAI, as it is installed,
// against a server.
func TestOpenAIClient(t *testing.T) {
	python := pythontest.Interpreter(t, "openai")
	files := in("characters", characters(t))
	files["encoder/model.onnx"], files["encoder/tokenizer.json"] = encoder(), wordpiece(t)
	_, h := start(t, Config{Paths: []string{write(t, files)}, Memory: 1 << 30, Token: "secret"})
	l := newSingle(t, files["characters/model.onnx"])
	wants := map[string]string{}
	for name, prompt := range map[string]string{"completion": "A tensor", "chat": "A tensor\n"} {
		wants[name] = textOf(t, characters(t), l.write(t, idsOf(t, characters(t), prompt), 40, 512))
	}
	text, err := json.Marshal(wants)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/openai_client.py", h.URL+"/v1", string(text))
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}

// FuzzTextRequest wants an error in the form of the API, or a request that can
// be run, for whatever a body is.
func FuzzTextRequest(f *testing.F) {
	dir := write(f, characters(f))
	files, err := readTextFiles(filepath.Join(dir, "model.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range []string{
		`{"prompt":"x","n":2,"stop":["a"],"logit_bias":{"1":2},"temperature":0.5,"top_p":0,"top_k":-1,"seed":3,"logprobs":2,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[[1,2],[3]],"max_tokens":3,"user":"x","echo":false}`, `{"prompt":["a","b"],"best_of":1}`, `{"prompt":[1,2]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":null,"tool_calls":[{}]}],"chat_template_kwargs":{"a":[1]},"logprobs":true,"top_logprobs":2}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, chat := range []bool{false, true} {
			var all fields
			if json.Unmarshal([]byte(body), &all) != nil || all == nil {
				return
			}
			var err error
			var prompts [][]int64
			if chat {
				prompts = make([][]int64, 1)
				prompts[0], err = parseMessages(all, files, 64)
			} else {
				prompts, err = parsePrompts(all, "prompt", files, 64)
			}
			var q *textRequest
			if err == nil {
				q, err = parseText(all, chat, files.sampling)
			}
			if err != nil {
				if _, code := errorBody(err); code != 400 && code != 500 {
					t.Errorf("got %v with the code %d", err, code)
				} else if code == 500 {
					t.Errorf("got %v as a fault of the server", err)
				}
				continue
			}
			for _, p := range prompts {
				if len(p) == 0 {
					t.Error("got an empty prompt")
				}
			}
			if q.choices < 1 || q.logs < -1 || q.tokens < 0 || q.options.Check() != nil {
				t.Errorf("got %+v", q)
			}
		}
	})
}

// TestBodies wants requests in every form in which a body may come.
func TestBodies(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, in("m", characters(t)))}, Memory: 1 << 30, MaxBody: 4096})
	const body = `{"model":"m","prompt":"A tensor","max_tokens":3,"temperature":0}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(body))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for _, c := range []struct {
		encoding string
		body     io.Reader // without a length where it is none of the known kinds
	}{{"", strings.NewReader(body)}, {"", io.MultiReader(strings.NewReader(body))}, {"gzip", &zipped}} {
		r, err := http.NewRequest("POST", h.URL+"/v1/completions", c.body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Encoding", c.encoding)
		got := do(t, r)
		var a completionReply
		if err := json.Unmarshal([]byte(got.text), &a); err != nil || got.code != 200 {
			t.Errorf("got %d and %s", got.code, got.text)
			continue
		}
		texts[a.Choices[0].Text] = true
	}
	if len(texts) != 1 {
		t.Errorf("got %v, want one text", texts)
	}
	long := `{"model":"m","prompt":"` + strings.Repeat("x", 5000) + `"}`
	for _, body := range []io.Reader{strings.NewReader(long), io.MultiReader(strings.NewReader(long))} {
		r, err := http.NewRequest("POST", h.URL+"/v1/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, do(t, r), 413, `"type":"invalid_request_error"`)
	}
}
