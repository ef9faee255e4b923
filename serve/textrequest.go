package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/tenure-go/tenure/serve/internal/jinja"
	"github.com/tenure-go/tenure/serve/sampling"
	"github.com/tenure-go/tenure/tokenizer"
)

// textRequest is a request for completions of some prompts.
type textRequest struct {
	chat    bool
	prompts [][]int64
	choices int // of each prompt
	tokens  int // of each choice, at most; 0: as many as there is room for
	options sampling.Options
	seed    uint64
	stop    []string
	logs    int  // -1: none
	onward  bool // tokens that end a text do not
	stream  bool
	usage   bool // a last part of the stream has it
}

// parseText reads the fields of a request, but for those of the prompt.
func parseText(f fields, chat bool, standard sampling.Options) (q *textRequest, err error) {
	q = &textRequest{chat: chat, choices: 1, logs: -1, seed: rand.Uint64()}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	take := func(name string, v any, want string) bool {
		ok, err := f.take(name, v, want)
		note(err)
		return ok
	}
	q.options, err = f.samplingOptions(standard)
	note(err)
	note(q.parseLength(f))
	note(q.parseLogs(f))
	if take("n", &q.choices, "a whole number") && (q.choices < 1 || q.choices > mostChoices) {
		note(wrong("n", "got %d, want 1 to %d", q.choices, mostChoices))
	}
	var seed int64
	if take("seed", &seed, "a whole number") {
		q.seed = uint64(seed)
	}
	take("ignore_eos", &q.onward, "true or false")
	take("stream", &q.stream, "true or false")
	var options struct {
		Usage       bool  `json:"include_usage"`
		Obfuscation *bool `json:"include_obfuscation"`
	}
	if take("stream_options", &options, "an object") && !q.stream {
		note(wrong("stream_options", "want it with stream alone"))
	}
	q.usage = options.Usage
	note(q.parseStop(f))
	if chat {
		note(f.only("tools", "answers are text", "[]"))
		note(f.only("tool_choice", "answers are text", `"none"`, `"auto"`))
		note(f.only("functions", "answers are text", "[]"))
		note(f.only("function_call", "answers are text", `"none"`, `"auto"`))
		note(f.only("response_format", "answers are text", `{"type":"text"}`))
		note(f.only("modalities", "answers are text", `["text"]`))
		note(f.only("store", "nothing is stored", "false"))
	} else {
		note(f.only("echo", "the prompt is not repeated", "false"))
		note(f.only("suffix", "models write on from the end of the prompt", `""`))
		note(f.only("best_of", "all choices are returned", fmt.Sprint(q.choices), "1"))
	}
	note(f.free())
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return q, nil
}

func (q *textRequest) parseLength(f fields) error {
	names := []string{"max_tokens"}
	if q.chat {
		names = []string{"max_tokens", "max_completion_tokens"} // the second one is the newer
	} else {
		q.tokens = 16
	}
	for _, name := range names {
		given, err := f.take(name, &q.tokens, "a whole number")
		if err != nil {
			return err
		}
		if given && q.tokens < 1 {
			return wrong(name, "got %d, want 1 or more", q.tokens)
		}
	}
	return nil
}

// parseLogs reads which probabilities are told: by a number of completions, by
// two fields of chats.
func (q *textRequest) parseLogs(f fields) error {
	if !q.chat {
		given, err := f.take("logprobs", &q.logs, "a whole number")
		if given && (q.logs < 0 || q.logs > mostTop) {
			err = wrong("logprobs", "got %d, want 0 to %d", q.logs, mostTop)
		}
		return err
	}
	on, top := false, 0
	if _, err := f.take("logprobs", &on, "true or false"); err != nil {
		return err
	}
	given, err := f.take("top_logprobs", &top, "a whole number")
	switch {
	case err != nil:
		return err
	case given && !on && top != 0:
		return wrong("top_logprobs", "want logprobs with it")
	case top < 0 || top > mostTop:
		return wrong("top_logprobs", "got %d, want 0 to %d", top, mostTop)
	}
	if on {
		q.logs = top
	}
	return nil
}

func (q *textRequest) parseStop(f fields) error {
	raw := f["stop"]
	var one string
	if len(raw) > 0 && raw[0] == '"' {
		if _, err := f.take("stop", &one, "a text or a list of texts"); err != nil {
			return err
		}
		q.stop = []string{one}
	} else if _, err := f.take("stop", &q.stop, "a text or a list of texts"); err != nil {
		return err
	}
	if len(q.stop) > mostStops {
		return wrong("stop", "got %d texts, want at most %d", len(q.stop), mostStops)
	}
	for _, s := range q.stop {
		if s == "" || len(s) > mostStop {
			return wrong("stop", "got a text of %d bytes, want 1 to %d", len(s), mostStop)
		}
	}
	return nil
}

// parsePrompts reads the prompts of completions: a text, or the numbers of
// tokens, or a list of one of these.
func parsePrompts(f fields, name string, g *textFiles, length int) (prompts [][]int64, err error) {
	raw, ok := f[name]
	delete(f, name)
	if !ok || string(raw) == "null" {
		return nil, wrong(name, "got none, want a text, or a list of texts or of numbers of tokens")
	}
	var list []json.RawMessage
	if raw[0] != '[' {
		list = []json.RawMessage{raw}
	} else if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, wrong(name, "got an empty list, want one prompt or more")
	}
	if c := list[0][0]; c == '-' || c >= '0' && c <= '9' {
		list = []json.RawMessage{raw}
	}
	if len(list) > mostPrompts {
		return nil, wrong(name, "got %d prompts, want at most %d", len(list), mostPrompts)
	}
	for _, one := range list {
		ids, err := g.promptOf(name, one, length)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, ids)
	}
	return prompts, nil
}

// mostPrompts is how many prompts or inputs a request may have.
const mostPrompts = 2048

// promptOf reads a text or a list of tokens.
func (g *textFiles) promptOf(name string, raw json.RawMessage, length int) (ids []int64, err error) {
	var text string
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		if ids, err = g.encode(name, text, length); err != nil {
			return nil, err
		}
	} else if raw[0] != '[' || json.Unmarshal(raw, &ids) != nil {
		return nil, wrong(name, "got %.50s, want a text, or a list of texts or of numbers of tokens", raw)
	}
	for _, id := range ids {
		if _, ok := g.tok.Token(id); !ok {
			return nil, wrong(name, "got the token %d, want one of the %d that the tokenizer has", id, g.tok.Size())
		}
	}
	if len(ids) == 0 {
		return nil, wrong(name, "got a prompt without tokens, want one or more")
	}
	return ids, nil
}

// encode makes tokens of a text, unless it is too long in any case.
func (g *textFiles) encode(name, text string, length int, options ...tokenizer.Option) ([]int64, error) {
	if len(text)/max(g.longest, 1) > length {
		return nil, tooLong(name, length, fmt.Sprintf("a text of %d bytes", len(text)))
	}
	return g.tok.AppendIDs(nil, text, append(options, tokenizer.PadTo(0, ""), tokenizer.Truncate(0, 0))...)
}

// tooLong is the error of a prompt that leaves no room for an answer.
func tooLong(name string, length int, got string) error {
	return &apiError{param: name, kind: "context_length_exceeded", text: fmt.Sprintf("%s: got %s, want less than the %d tokens that a sequence may have", name, got, length)}
}

// parseMessages makes the prompt of a chat, by the template of the model.
func parseMessages(f fields, g *textFiles, length int) ([]int64, error) {
	raw, ok := f["messages"]
	delete(f, "messages")
	if !ok || string(raw) == "null" {
		return nil, wrong("messages", "got none, want a list of messages")
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, wrong("messages", "got %.50s, want a list of one message or more", raw)
	}
	if g.refused != nil {
		return nil, &apiError{text: fmt.Sprintf("the template of the model is not supported: %v: ask for completions", g.refused)}
	}
	if g.template == nil {
		return nil, &apiError{text: "the model has no chat_template in its tokenizer_config.json: ask for completions"}
	}
	messages, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, wrong("messages", "%v", err)
	}
	for i, m := range list {
		if err := flatten(i, m, messages.(*jinja.List).Items[i].(*jinja.Map)); err != nil {
			return nil, err
		}
	}
	vars := map[string]any{}
	var more map[string]json.RawMessage
	if _, err := f.take("chat_template_kwargs", &more, "an object"); err != nil {
		return nil, err
	}
	for name, raw := range more {
		if vars[name], err = jinja.FromJSON(raw); err != nil {
			return nil, wrong("chat_template_kwargs", "%v", err)
		}
	}
	maps.Copy(vars, map[string]any{"messages": messages, "add_generation_prompt": true, "tools": nil, "documents": nil})
	for name, text := range g.special {
		vars[name] = text
	}
	text, err := g.template.Render(vars)
	if err != nil {
		return nil, wrong("messages", "the model's chat_template refuses them: %v", err)
	}
	ids, err := g.encode("messages", text, length, tokenizer.WithoutSpecial())
	if err == nil && len(ids) == 0 {
		err = wrong("messages", "the model's chat_template makes an empty prompt of them")
	}
	return ids, err
}

// flatten checks a message, and makes one text of parts that are texts: most
// templates know nothing else.
func flatten(i int, m map[string]json.RawMessage, to *jinja.Map) error {
	at := func(format string, args ...any) error {
		return wrong("messages", fmt.Sprintf("message %d: ", i)+format, args...)
	}
	var role string
	if json.Unmarshal(m["role"], &role) != nil || role == "" {
		return at("got no role, want system, user or assistant")
	}
	raw := m["content"]
	if len(raw) == 0 || string(raw) == "null" {
		if m["tool_calls"] == nil {
			return at("got no content")
		}
		to.Set("content", "")
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return nil
	}
	var parts []struct {
		Type string
		Text *string
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return at("got the content %.50s, want a text or a list of parts", raw)
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" || p.Text == nil {
			return at("got a part of the type %q, want text", p.Type)
		}
		texts = append(texts, *p.Text)
	}
	to.Set("content", strings.Join(texts, "\n"))
	return nil
}
