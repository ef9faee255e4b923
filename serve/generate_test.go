package serve

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// characters returns the files of a model of characters that writes text: that
// of examples/generate.
func characters(t testing.TB) map[string][]byte {
	t.Helper()
	dir := filepath.Join("..", "examples", "generate")
	files := map[string][]byte{}
	for _, name := range []string{"model.onnx", "tokenizer.json", "tokenizer_config.json"} {
		from := name
		if name == "model.onnx" {
			from = "generate.onnx"
		}
		data, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = data
	}
	return files
}

// in puts files into a folder.
func in(folder string, files map[string][]byte, more ...map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	for _, m := range append(more, files) {
		for name, data := range m {
			all[filepath.Join(folder, name)] = data
		}
	}
	return all
}

// single writes tokens as a loop over a session does, the likeliest one each
// time, with states of its own.
type single struct {
	m *tenure.Model
	s *tenure.Session
}

func newSingle(t testing.TB, file []byte) *single {
	t.Helper()
	m, err := tenure.LoadBytes(file, tenure.WithStates())
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		m.Close()
	})
	return &single{m, s}
}

// write reads the prompt in parts, as the server does: another cut may round
// differently.
func (l *single) write(t testing.TB, prompt []int64, n, part int) (drawn []int64) {
	t.Helper()
	states, err := l.s.NewStates(len(prompt) + n)
	if err != nil {
		t.Fatal(err)
	}
	defer states.Close()
	next, rest := prompt[:min(part, len(prompt))], prompt[min(part, len(prompt)):]
	for len(drawn) < n {
		in := tenure.Inputs{}
		for _, i := range l.m.Inputs() {
			var list []int64
			switch i.Name {
			case "input_ids":
				list = next
			case "position_ids":
				for j := range next {
					list = append(list, int64(states.Len()+j))
				}
			case "attention_mask":
				list = slices.Repeat([]int64{1}, states.Len()+len(next))
			default:
				continue
			}
			x, err := tensor.Of(list, 1, len(list))
			if err != nil {
				t.Fatal(err)
			}
			defer x.Release()
			in[i.Name] = x
		}
		out, err := states.Run(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		logits, err := tensor.Values[float32](out["logits"])
		if err != nil {
			t.Fatal(err)
		}
		words := out["logits"].Shape().Size(out["logits"].Shape().Rank() - 1)
		out.Release()
		if len(rest) > 0 {
			next, rest = rest[:min(part, len(rest))], rest[min(part, len(rest)):]
			continue
		}
		row := logits[len(logits)-words:]
		best := 0
		for i, v := range row {
			if v > row[best] {
				best = i
			}
		}
		drawn = append(drawn, int64(best))
		next = []int64{int64(best)}
	}
	return drawn
}

// completionReply is an answer of the API.
type completionReply struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index   int
		Text    string
		Message struct{ Role, Content string }
		Delta   struct{ Role, Content string }
		Finish  string `json:"finish_reason"`
		Logs    *struct {
			Tokens  []string
			Logs    []float64            `json:"token_logprobs"`
			Tops    []map[string]float64 `json:"top_logprobs"`
			Offsets []int                `json:"text_offset"`
			Content []struct {
				Token string
				Log   float64 `json:"logprob"`
				Top   []struct {
					Token string
					Log   float64 `json:"logprob"`
				} `json:"top_logprobs"`
			}
		} `json:"logprobs"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	Error *struct {
		Message, Type, Param, Code string
	}
}

// ask sends a request whose fields are in pairs.
func ask(t testing.TB, url string, pairs ...any) (completionReply, reply) {
	t.Helper()
	body := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		body[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	got := post(t, url, string(text), nil)
	var a completionReply
	if err := json.Unmarshal([]byte(got.text), &a); err != nil && !strings.HasPrefix(got.text, "data: ") {
		t.Errorf("got %d and %q: %v", got.code, got.text, err)
	}
	return a, got
}

// parts reads the events of a stream, up to the last one.
func parts(t testing.TB, text string) (list []completionReply) {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	for i, e := range events {
		data, ok := strings.CutPrefix(e, "data: ")
		if !ok {
			t.Fatalf("got the event %q, want data", e)
		}
		if i == len(events)-1 && data == "[DONE]" {
			return list
		}
		var a completionReply
		if err := json.Unmarshal([]byte(data), &a); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		list = append(list, a)
	}
	t.Errorf("got no [DONE] at the end of %q", text)
	return list
}

// idsOf returns the numbers of characters.
func idsOf(t testing.TB, files map[string][]byte, text string) (ids []int64) {
	t.Helper()
	var f struct {
		Model struct{ Vocab map[string]int64 }
	}
	if err := json.Unmarshal(files["tokenizer.json"], &f); err != nil {
		t.Fatal(err)
	}
	for _, c := range text {
		ids = append(ids, f.Model.Vocab[string(c)])
	}
	return ids
}

func textOf(t testing.TB, files map[string][]byte, ids []int64) string {
	t.Helper()
	var f struct {
		Model struct{ Vocab map[string]int64 }
	}
	if err := json.Unmarshal(files["tokenizer.json"], &f); err != nil {
		t.Fatal(err)
	}
	words := map[int64]string{}
	for w, id := range maps.All(f.Model.Vocab) {
		words[id] = w
	}
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(words[id])
	}
	return b.String()
}

// TestComplete compares with the text of a plain loop.
func TestComplete(t *testing.T) {
	files := characters(t)
	_, h := start(t, Config{Paths: []string{write(t, in("characters", files))}, Memory: 1 << 30})
	l := newSingle(t, files["model.onnx"])
	for _, prompt := range []string{"A tensor", "The plan of a model says", "N"} {
		want := textOf(t, files, l.write(t, idsOf(t, files, prompt), 40, 512))
		a, got := ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", prompt, "max_tokens", 40, "temperature", 0)
		if got.code != 200 || len(a.Choices) != 1 || a.Choices[0].Text != want || a.Choices[0].Finish != "length" {
			t.Errorf("%q: got %d and %s, want %q", prompt, got.code, got.text, want)
			continue
		}
		if u := a.Usage; u == nil || u.Prompt != len(prompt) || u.Completion != 40 || u.Total != len(prompt)+40 {
			t.Errorf("got usage %+v, want %d and 40", u, len(prompt))
		}
		_, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", prompt, "max_tokens", 40, "temperature", 0, "stream", true, "stream_options", map[string]any{"include_usage": true})
		text := ""
		list := parts(t, got.text)
		for _, p := range list[:len(list)-1] {
			text += p.Choices[0].Text
			if p.Usage != nil {
				t.Errorf("got usage in a part before the last: %+v", p)
			}
		}
		if last := list[len(list)-1]; text != want || len(last.Choices) != 0 || last.Usage == nil || last.Usage.Completion != 40 {
			t.Errorf("%q: got %q and %+v, want %q in parts, and the usage", prompt, text, last, want)
		}
		if kind := got.header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("got the Content-Type %q", kind)
		}
	}
}

// generatorOf returns that of a model.
func generatorOf(t testing.TB, s *Server, name string) *generator {
	t.Helper()
	m, err := s.use(name, "")
	if err != nil {
		t.Fatal(err)
	}
	m.done()
	return m.gen
}

// TestSampling wants the same text of one seed, and choices with seeds of their
// own.
func TestSampling(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, in("characters", characters(t)))}, Memory: 1 << 30})
	draw := func(pairs ...any) []string {
		t.Helper()
		a, got := ask(t, h.URL+"/v1/completions", append([]any{"model", "characters", "prompt", "The ", "max_tokens", 30}, pairs...)...)
		if got.code != 200 {
			t.Fatalf("got %d and %s", got.code, got.text)
		}
		var list []string
		for i, c := range a.Choices {
			if c.Index != i || len(c.Text) != 30 {
				t.Errorf("got choice %d as number %d, with %q", c.Index, i, c.Text)
			}
			list = append(list, c.Text)
		}
		return list
	}
	one := draw("seed", 5)
	if again := draw("seed", 5); !slices.Equal(one, again) {
		t.Errorf("got %q and %q for one seed", one, again)
	}
	if other := draw("seed", 6); slices.Equal(one, other) {
		t.Errorf("got %q for two seeds", one)
	}
	if a, b := draw(), draw(); slices.Equal(a, b) {
		t.Errorf("got %q twice without a seed", a)
	}
	three := draw("seed", 5, "n", 3)
	if len(three) != 3 || three[0] != one[0] || three[0] == three[1] || three[1] == three[2] {
		t.Errorf("got %q, want %q and two others", three, one[0])
	}
	if six := draw("seed", 6); three[1] != six[0] {
		t.Errorf("got the second choice %q, want that of the next seed, %q", three[1], six[0])
	}
	if least := draw("top_k", 1); least[0] != draw("temperature", 0)[0] || least[0] != draw("top_p", 0)[0] {
		t.Errorf("got %q for one token to draw of, want the likeliest one", least)
	}
	if b := draw("temperature", 0, "logit_bias", map[string]int{"0": 100}); b[0] != strings.Repeat("\n", 30) {
		t.Errorf("got %q, want the character that is preferred", b)
	}
}

// TestStops wants the text up to a stop word, in every form of answer.
func TestStops(t *testing.T) {
	files := characters(t)
	_, h := start(t, Config{Paths: []string{write(t, in("characters", files))}, Memory: 1 << 30})
	whole := textOf(t, files, newSingle(t, files["model.onnx"]).write(t, idsOf(t, files, "A tensor"), 40, 512))
	for _, stop := range [][]string{{whole[10:14]}, {whole[20:21]}, {"no such", whole[5:9], whole[30:34]}, {"no such"}, {whole[38:] + "x"}} {
		want, stopped := firstStop(whole, stop)
		reason := map[bool]string{true: "stop", false: "length"}[stopped]
		a, got := ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 40, "temperature", 0, "stop", stop)
		if len(a.Choices) != 1 || a.Choices[0].Text != want || a.Choices[0].Finish != reason {
			t.Errorf("%q: got %s, want %q and %s", stop, got.text, want, reason)
		}
		_, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 40, "temperature", 0, "stop", stop, "stream", true)
		text, last := "", ""
		for _, p := range parts(t, got.text) {
			text += p.Choices[0].Text
			last = p.Choices[0].Finish
			if !strings.HasPrefix(want, text) {
				t.Errorf("%q: got %q, which is no beginning of %q", stop, text, want)
			}
		}
		if text != want || last != reason {
			t.Errorf("%q: got %q and %s in parts, want %q and %s", stop, text, last, want, reason)
		}
	}
	a, got := ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 40, "temperature", 0, "stop", whole[20:21])
	if want, _ := firstStop(whole, []string{whole[20:21]}); len(a.Choices) != 1 || a.Choices[0].Text != want {
		t.Errorf("got %s, want %q", got.text, want)
	}
}

// TestEnds wants tokens that end a text to do so, unless the request says that
// they do not.
func TestEnds(t *testing.T) {
	files := characters(t)
	whole := textOf(t, files, newSingle(t, files["model.onnx"]).write(t, idsOf(t, files, "A tensor"), 40, 512))
	ends := idsOf(t, files, whole[12:13]+"@")
	text, err := json.Marshal(map[string]any{"eos_token_id": ends, "temperature": 0})
	if err != nil {
		t.Fatal(err)
	}
	_, h := start(t, Config{Paths: []string{write(t, in("characters", files, map[string][]byte{"generation_config.json": text, "config.json": []byte(`{"model_type":"x","n_positions":64}`)}))}, Memory: 1 << 30})
	want, _, _ := strings.Cut(whole, whole[12:13])
	a, got := ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 40)
	if len(a.Choices) != 1 || a.Choices[0].Text != want || a.Choices[0].Finish != "stop" || a.Usage.Completion != len(want)+1 {
		t.Errorf("got %s, want %q, by the configuration's temperature", got.text, want)
	}
	a, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 40, "ignore_eos", true)
	if len(a.Choices) != 1 || a.Choices[0].Text != whole || a.Choices[0].Finish != "length" {
		t.Errorf("got %s, want %q", got.text, whole)
	}
	a, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 400, "ignore_eos", true)
	if len(a.Choices) != 1 || a.Usage.Total != 64 || a.Choices[0].Finish != "length" {
		t.Errorf("got %s, want the 64 tokens that a sequence may have", got.text)
	}
	a, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", strings.Repeat("a", 64))
	if got.code != 400 || a.Error.Code != "context_length_exceeded" || a.Error.Param != "prompt" || !strings.Contains(a.Error.Message, "got 64 tokens, want less than the 64") {
		t.Errorf("got %d and %s, want the prompt refused", got.code, got.text)
	}
	a, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", strings.Repeat("a", 100000))
	if got.code != 400 || a.Error.Code != "context_length_exceeded" || !strings.Contains(a.Error.Message, "100000 bytes") {
		t.Errorf("got %d and %s, want the prompt refused before it is made tokens", got.code, got.text)
	}
}

// TestLogs wants the probabilities of tokens.
func TestLogs(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, in("characters", characters(t)))}, Memory: 1 << 30})
	a, got := ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 8, "temperature", 0, "logprobs", 3)
	if len(a.Choices) != 1 || a.Choices[0].Logs == nil {
		t.Fatalf("got %s, want probabilities", got.text)
	}
	l := a.Choices[0].Logs
	if len(l.Tokens) != 8 || strings.Join(l.Tokens, "") != a.Choices[0].Text || l.Offsets[7] != 7 {
		t.Errorf("got %+v, want eight tokens with their places", l)
	}
	for i, top := range l.Tops {
		if len(top) != 3 || top[l.Tokens[i]] != l.Logs[i] || l.Logs[i] > 0 {
			t.Errorf("got %v and %q with %v, want three, and the likeliest drawn", top, l.Tokens[i], l.Logs[i])
		}
	}
	a, got = ask(t, h.URL+"/v1/chat/completions", "model", "characters", "messages", []any{map[string]any{"role": "user", "content": "A tensor"}}, "max_tokens", 8, "temperature", 0, "logprobs", true, "top_logprobs", 2)
	if len(a.Choices) != 1 || a.Choices[0].Logs == nil || len(a.Choices[0].Logs.Content) != 8 {
		t.Fatalf("got %s, want probabilities", got.text)
	}
	for _, c := range a.Choices[0].Logs.Content {
		if len(c.Top) != 2 || c.Top[0].Token != c.Token || c.Top[0].Log != c.Log {
			t.Errorf("got %+v, want two, and the likeliest drawn", c)
		}
	}
	a, got = ask(t, h.URL+"/v1/completions", "model", "characters", "prompt", "A tensor", "max_tokens", 2, "logprobs", 0)
	if len(a.Choices) != 1 || a.Choices[0].Logs == nil || len(a.Choices[0].Logs.Logs) != 2 || len(a.Choices[0].Logs.Tops[0]) != 0 {
		t.Errorf("got %s, want the probabilities of the drawn tokens alone", got.text)
	}
}

// TestChat wants the prompt of a chat by the model's template.
func TestChat(t *testing.T) {
	files := characters(t)
	files["chat_template.jinja"] = []byte("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% if m.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}{% endfor %}{{ end | default('') }}")
	_, h := start(t, Config{Paths: []string{write(t, in("characters", files))}, Memory: 1 << 30})
	l := newSingle(t, files["model.onnx"])
	message := func(role string, content any) any { return map[string]any{"role": role, "content": content} }
	for prompt, pairs := range map[string][]any{
		"user: A tensor\n":                       {"messages", []any{message("user", "A tensor")}},
		"system: Go\nuser: a\nb\nassistant: c\n": {"messages", []any{message("system", "Go"), message("user", []any{map[string]any{"type": "text", "text": "a"}, map[string]any{"type": "text", "text": "b"}}), message("assistant", "c")}},
		"user: x\nyes":                           {"messages", []any{message("user", "x")}, "chat_template_kwargs", map[string]any{"end": "yes"}},
	} {
		want := textOf(t, files, l.write(t, idsOf(t, files, prompt), 12, 512))
		pairs = append(pairs, "model", "characters", "max_completion_tokens", 12, "temperature", 0)
		a, got := ask(t, h.URL+"/v1/chat/completions", pairs...)
		if len(a.Choices) != 1 || a.Choices[0].Message.Content != want || a.Choices[0].Message.Role != "assistant" || a.Object != "chat.completion" || a.Usage.Prompt != len(prompt) {
			t.Errorf("%q: got %s, want %q", prompt, got.text, want)
		}
		_, got = ask(t, h.URL+"/v1/chat/completions", append(pairs, "stream", true)...)
		list := parts(t, got.text)
		text := ""
		for _, p := range list {
			text += p.Choices[0].Delta.Content
		}
		if text != want || list[0].Choices[0].Delta.Role != "assistant" || list[len(list)-1].Choices[0].Finish != "length" || list[0].Object != "chat.completion.chunk" {
			t.Errorf("%q: got %s, want %q in parts", prompt, got.text, want)
		}
	}
	a, got := ask(t, h.URL+"/v1/chat/completions", "model", "characters", "messages", []any{message("tool", "x")})
	if got.code != 400 || a.Error.Param != "messages" || !strings.Contains(a.Error.Message, "refuses them: no tools here") {
		t.Errorf("got %d and %s, want what the template says", got.code, got.text)
	}
}
