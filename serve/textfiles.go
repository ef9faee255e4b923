package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/serve/internal/jinja"
	"github.com/tenure-go/tenure/serve/sampling"
	"github.com/tenure-go/tenure/tokenizer"
)

// textFiles are what lies beside the file of a language model.
type textFiles struct {
	tok      *tokenizer.Tokenizer
	longest  int // bytes of a token
	template *jinja.Template
	refused  error             // why there is no template, where there is a text of one
	special  map[string]string // bos_token and others, for the template
	ends     map[int64]bool    // tokens that end a text
	length   int               // positions that the model has, 0 if no file says so
	sampling sampling.Options  // of requests that say nothing else
	pooling  string            // "", or how a text's vector is made of those of its tokens
}

// mostFile is how large a file of settings or a template may be.
const mostFile = 16 << 20

// readTextFiles reads the files beside a model's file. It returns nil where
// there is no tokenizer.json.
func readTextFiles(file string) (*textFiles, error) {
	dir := filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
		// Versions of a model share a tokenizer; some exporters write
		// onnx/model.onnx.
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		if _, err := strconv.Atoi(filepath.Base(abs)); err != nil && filepath.Base(abs) != "onnx" {
			return nil, nil
		}
		dir = filepath.Dir(abs)
		if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
			return nil, nil
		}
	}
	f := &textFiles{special: map[string]string{}, ends: map[int64]bool{}}
	var err error
	if f.tok, err = tokenizer.Load(filepath.Join(dir, "tokenizer.json")); err != nil {
		return nil, err
	}
	for token := range f.tok.All() {
		f.longest = max(f.longest, len(token))
	}
	for _, read := range []func(string) error{f.readTokenizerConfig, f.readConfig, f.readGenerationConfig, f.readPooling} {
		if err := read(dir); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// readJSON reads a file of settings. It reports whether there is one.
func readJSON(path string, v any) (bool, error) {
	text, err := readSmall(path)
	if err == nil && text != nil {
		if err = json.Unmarshal(text, v); err != nil {
			err = fmt.Errorf("%s: %w: %w", path, err, ErrConfig)
		}
	}
	return text != nil, err
}

// readSmall reads a file, nil if there is none.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > mostFile {
		err = fmt.Errorf("%s: got %d bytes, want at most %d: %w", path, info.Size(), mostFile, ErrConfig)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// tokenText reads a special token: its text, or an object with it as content.
func tokenText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var token struct{ Content string }
	_ = json.Unmarshal(raw, &token) // null is no token
	return token.Content
}

// readTokenizerConfig reads special tokens and the template of chats.
func (f *textFiles) readTokenizerConfig(dir string) error {
	path := filepath.Join(dir, "tokenizer_config.json")
	var c map[string]json.RawMessage
	if _, err := readJSON(path, &c); err != nil {
		return err
	}
	for name, raw := range c {
		if strings.HasSuffix(name, "_token") {
			if text := tokenText(raw); text != "" {
				f.special[name] = text
			}
		}
	}
	if id, ok := f.tok.ID(f.special["eos_token"]); ok {
		f.ends[id] = true
	}
	var length float64 // some files have 1e30 for no bound
	if json.Unmarshal(c["model_max_length"], &length) == nil && length >= 1 && length < 1<<28 {
		f.length = int(length)
	}
	text, where := "", path
	own := filepath.Join(dir, "chat_template.jinja")
	if file, err := readSmall(own); err != nil {
		return err
	} else if file != nil {
		text, where = string(file), own
	} else if text, err = chosenTemplate(c["chat_template"]); err != nil {
		return fmt.Errorf("%s: chat_template: %w: %w", path, err, ErrConfig)
	}
	if text == "" {
		return nil
	}
	var err error
	if f.template, err = jinja.Parse(text); err != nil {
		f.refused = fmt.Errorf("%s: chat_template: %w", filepath.Base(where), err)
	}
	return nil
}

// chosenTemplate returns a template, or of several with names the default one.
func chosenTemplate(raw json.RawMessage) (text string, err error) {
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &several); err != nil {
		return "", errors.New("got neither a text nor a list of names and templates")
	}
	for _, t := range several {
		if t.Name == "default" {
			return t.Template, nil
		}
	}
	return "", errors.New("got templates with names, want one of the name default")
}

// tokenIDs reads a number or a list of them.
func tokenIDs(raw json.RawMessage) []int64 {
	var one int64
	if len(raw) > 0 && string(raw) != "null" && json.Unmarshal(raw, &one) == nil {
		return []int64{one}
	}
	var list []int64
	_ = json.Unmarshal(raw, &list) // null is none
	return list
}

// setEnds makes tokens those that end a text, in place of those of files that
// say less exactly.
func (f *textFiles) setEnds(raw json.RawMessage) {
	if list := tokenIDs(raw); len(list) > 0 {
		clear(f.ends)
		for _, id := range list {
			f.ends[id] = true
		}
	}
}

// isTrainingConfig reports whether a config.json is the one that comes with a
// model's weights, and not the configuration of a server.
func isTrainingConfig(path string) bool {
	var c map[string]json.RawMessage
	if filepath.Base(path) != "config.json" {
		return false
	}
	if ok, err := readJSON(path, &c); !ok || err != nil {
		return false // it is read, and refused, later
	}
	return c["model_type"] != nil || c["architectures"] != nil || c["transformers_version"] != nil
}

// readConfig reads how many positions the model has.
func (f *textFiles) readConfig(dir string) error {
	path := filepath.Join(dir, "config.json")
	if !isTrainingConfig(path) {
		return nil
	}
	var c map[string]json.RawMessage
	if _, err := readJSON(path, &c); err != nil {
		return err
	}
	for _, name := range []string{"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"} {
		var n int
		if json.Unmarshal(c[name], &n) == nil && n > 0 {
			f.length = n
			break
		}
	}
	f.setEnds(c["eos_token_id"])
	return nil
}

// readGenerationConfig reads the tokens that end a text, and how tokens are
// drawn where requests do not say so.
func (f *textFiles) readGenerationConfig(dir string) error {
	path := filepath.Join(dir, "generation_config.json")
	f.sampling = sampling.Options{Temperature: 1}
	var c struct {
		Ends        json.RawMessage `json:"eos_token_id"`
		Temperature *float64        `json:"temperature"`
		TopK        *int            `json:"top_k"`
		TopP        *float64        `json:"top_p"`
		MinP        *float64        `json:"min_p"`
	}
	if _, err := readJSON(path, &c); err != nil {
		return err
	}
	f.setEnds(c.Ends)
	set(&f.sampling.Temperature, c.Temperature)
	set(&f.sampling.TopK, c.TopK)
	set(&f.sampling.TopP, c.TopP)
	set(&f.sampling.MinP, c.MinP)
	if err := f.sampling.Check(); err != nil {
		return fmt.Errorf("%s: %w: %w", path, err, ErrConfig)
	}
	return nil
}

// set replaces a value by one that is given.
func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// readPooling reads how the vectors of sentence encoders are made.
func (f *textFiles) readPooling(dir string) error {
	var c map[string]any
	if _, err := readJSON(filepath.Join(dir, "1_Pooling", "config.json"), &c); err != nil {
		return err
	}
	for field, pooling := range map[string]string{"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_lasttoken": "last"} {
		if on, _ := c[field].(bool); on {
			if f.pooling != "" {
				return fmt.Errorf("%s: got the poolings %s and %s, want one: %w", filepath.Join(dir, "1_Pooling", "config.json"), f.pooling, pooling, ErrConfig)
			}
			f.pooling = pooling
		}
	}
	return nil
}

// textSettings are the parameters of a model's configuration that concern text,
// and its eviction.
type textSettings struct {
	generate  *bool // whether the model is one of text; nil: if it can be
	sequences int   // of a run, at most
	length    int   // tokens of a sequence, at most
	part      int   // tokens of a prompt that are read by one run
	memory    int64 // bytes of states
	pooling   string
	pinned    bool // it is never evicted
	raw       bool // vectors are not divided by their length
}

// parameter returns a parameter as text: Triton's form has it in an object.
func (c *ModelConfig) parameter(name string) (string, bool) {
	v, ok := c.Parameters[name]
	if m, is := v.(map[string]any); is {
		v, ok = m["string_value"]
	}
	switch v := v.(type) {
	case string:
		return v, ok
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), ok
	case bool:
		return strconv.FormatBool(v), ok
	}
	return fmt.Sprint(v), ok
}

// text reads the parameters that concern text.
func (c *ModelConfig) text() (t textSettings, err error) {
	number := func(name string, most int64) (n int64) {
		text, ok := c.parameter(name)
		if !ok || err != nil {
			return 0
		}
		n, fault := strconv.ParseInt(text, 10, 64)
		if fault != nil || n < 1 || n > most {
			err = fmt.Errorf("parameters: %s: got %q, want 1 to %d: %w", name, text, most, ErrConfig)
		}
		return n
	}
	boolean := func(name string) *bool {
		text, ok := c.parameter(name)
		if !ok || err != nil {
			return nil
		}
		b, fault := strconv.ParseBool(text)
		if fault != nil {
			err = fmt.Errorf("parameters: %s: got %q, want true or false: %w", name, text, ErrConfig)
		}
		return &b
	}
	t.generate = boolean("generate")
	if b := boolean("evict"); b != nil {
		t.pinned = !*b
	}
	t.sequences = int(number("max_sequences", mostRuns))
	t.length = int(number("max_length", 1<<28))
	t.part = int(number("prompt_part", 1<<20))
	t.memory = number("state_bytes", 1<<60)
	if n := boolean("normalize"); n != nil {
		t.raw = !*n
	}
	if p, ok := c.parameter("pooling"); ok {
		t.pooling = p
		if p != "mean" && p != "cls" && p != "last" && err == nil {
			err = fmt.Errorf("parameters: pooling: got %q, want mean, cls or last: %w", p, ErrConfig)
		}
	}
	return t, err
}
