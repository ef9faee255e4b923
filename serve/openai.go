package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/serve/internal/oip"
	"github.com/tenure-go/tenure/serve/sampling"
)

// openAIRoutes adds what clients of OpenAI's API ask for.
func (s *Server) openAIRoutes(mux *http.ServeMux) {
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := error(&apiError{code: http.StatusUnauthorized, kind: "invalid_api_key", text: "got no token, or another one, want that of the server"})
			if s.admits(r) {
				err = f(w, r)
			}
			if err != nil {
				s.refuseOpenAI(w, r, err)
			}
		})
	}
	handle("GET /v1/models", s.listTextModels)
	handle("GET /v1/models/{model}", s.showTextModel)
	handle("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) error { return s.complete(w, r, false) })
	handle("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) error { return s.complete(w, r, true) })
	handle("POST /v1/embeddings", s.embeddings)
	handle("/v1/", func(_ http.ResponseWriter, r *http.Request) error {
		return fmt.Errorf("%s %s is %w", r.Method, r.URL.Path, ErrNotFound)
	})
}

// apiError is an error with what the API tells of it beside its text.
type apiError struct {
	code  int    // of HTTP, 400 by default
	param string // the field of the request, "" if none is at fault
	kind  string // a word for programs, "" without one
	text  string
}

func (e *apiError) Error() string { return e.text }

func (e *apiError) Is(target error) bool {
	return e.code == 0 && target == oip.ErrMessage || e.code == http.StatusNotFound && target == ErrNotFound
}

// wrong returns an error about a field of a request.
func wrong(param, format string, args ...any) error {
	return &apiError{param: param, text: param + ": " + fmt.Sprintf(format, args...)}
}

// errorBody returns an error in the form of the API, and the code of HTTP.
func errorBody(err error) (body any, code int) {
	code = status(err)
	var own *apiError
	if !errors.As(err, &own) {
		own = &apiError{}
	} else if own.code != 0 {
		code = own.code
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // the stack of a fault is for the log
	kind := "invalid_request_error"
	if code >= 500 {
		kind = "server_error"
	}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{"message": text, "type": kind, "param": null(own.param), "code": null(own.kind)}}, code
}

// refuseOpenAI answers a request that failed before its answer began.
func (s *Server) refuseOpenAI(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errStopped) || r.Context().Err() != nil && s.base.Err() == nil {
		return // nobody reads it, or the answer has begun
	}
	if var_ := (unknownModel{}); errors.As(err, &var_) {
		err = &apiError{code: http.StatusNotFound, param: "model", kind: "model_not_found", text: err.Error()}
	}
	body, code := errorBody(err)
	switch code {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusInternalServerError:
		s.config.Log.Error("a request failed", "path", r.URL.Path, "error", err)
	}
	_ = answerJSON(w, code, body)
}

// textModel is a model as the API lists it.
type textModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

func (m *model) asTextModel() textModel {
	return textModel{m.name, "model", m.loaded.Unix(), "tenure"}
}

// listTextModels lists the models that generate or embed text: of each the
// version that requests get.
func (s *Server) listTextModels(w http.ResponseWriter, _ *http.Request) error {
	list, err := s.loaded("", "")
	if err != nil {
		return err
	}
	models := []textModel{}
	for i, m := range list {
		if (m.gen != nil || m.embed != nil) && (i+1 == len(list) || list[i+1].name != m.name) {
			models = append(models, m.asTextModel())
		}
		defer m.done()
	}
	return answerJSON(w, http.StatusOK, map[string]any{"object": "list", "data": models})
}

func (s *Server) showTextModel(w http.ResponseWriter, r *http.Request) error {
	m, err := s.use(r.PathValue("model"), "")
	if err != nil {
		return err
	}
	defer m.done()
	if m.gen == nil && m.embed == nil {
		return unknownModel{m.name, ""}
	}
	return answerJSON(w, http.StatusOK, m.asTextModel())
}

// newID returns an identifier that no other answer has.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + hex.EncodeToString(b[:])
}

// fields are those of a JSON object, which are read one by one.
type fields map[string]json.RawMessage

// readFields reads the body of a request, which takes memory of c: its text,
// and what is made of it.
func (s *Server) readFields(ctx context.Context, w http.ResponseWriter, r *http.Request, c *claim) (fields, error) {
	b, err := s.openBody(w, r)
	if err != nil {
		return nil, err
	}
	c.bytes = max(0, b.known)
	wait, cancel := s.patient(ctx)
	defer cancel()
	if err := s.ingress.acquire(wait, c); err != nil {
		b.discard()
		return nil, err
	}
	var text []byte
	if b.known >= 0 {
		text = make([]byte, b.known)
		if err = b.full(text); err == nil {
			err = b.end()
		}
	} else if text, err = b.rest(c, s.config.MaxBody); err == nil {
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		b.discard()
		return nil, err
	}
	if !c.tryGrow(8 * int64(len(text))) {
		return nil, fmt.Errorf("the text of the request does not fit into memory: %w", ErrBusy)
	}
	var f fields
	if err := json.Unmarshal(text, &f); err != nil || f == nil {
		return nil, &apiError{text: fmt.Sprintf("got a body that is no JSON object: %v", err)}
	}
	return f, nil
}

// take reads a field into v. It reports whether the field is there and is not
// null.
func (f fields) take(name string, v any, want string) (bool, error) {
	raw, ok := f[name]
	delete(f, name)
	if !ok || string(raw) == "null" {
		return false, nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, wrong(name, "got %.100s, want %s", raw, want)
	}
	return true, nil
}

// free refuses fields that are not known: they might mean what is not done.
func (f fields) free() error {
	for _, name := range []string{"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "parallel_tool_calls"} {
		delete(f, name) // they change nothing that the model does
	}
	var names []string
	for name, raw := range f {
		if string(raw) != "null" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &apiError{param: names[0], kind: "unknown_parameter", text: fmt.Sprintf("got the field %s, which is not supported", strings.Join(names, ", "))}
}

// only refuses a field that has another value than some that ask for nothing.
func (f fields) only(name, why string, values ...string) error {
	raw, ok := f[name]
	delete(f, name)
	if !ok || string(raw) == "null" || slices.Contains(values, strings.Join(strings.Fields(string(raw)), "")) {
		return nil
	}
	return wrong(name, "got %.100s, which is not supported: %s", raw, why)
}

// samplingOptions reads how tokens are drawn; what a request leaves out is that
// of standard.
func (f fields) samplingOptions(standard sampling.Options) (o sampling.Options, err error) {
	o = standard
	var bias map[string]float64
	for _, field := range []struct {
		name string
		to   any
		want string
	}{
		{"temperature", &o.Temperature, "a number"}, {"top_p", &o.TopP, "a number"}, {"min_p", &o.MinP, "a number"}, {"top_k", &o.TopK, "a whole number"},
		{"presence_penalty", &o.Presence, "a number"}, {"frequency_penalty", &o.Frequency, "a number"}, {"logit_bias", &bias, "an object of numbers"},
	} {
		given, fault := f.take(field.name, field.to, field.want)
		if fault != nil && err == nil {
			err = fault
		}
		if given && field.name == "top_p" && o.TopP == 0 && err == nil {
			o.TopP = 1e-12 // the likeliest token alone
		}
	}
	if o.TopK == -1 {
		o.TopK = 0 // as some clients say for all
	}
	for token, b := range bias {
		var id int64
		if json.Unmarshal([]byte(token), &id) != nil {
			return o, wrong("logit_bias", "got the key %.50q, want the number of a token", token)
		}
		if o.Bias == nil {
			o.Bias = map[int64]float64{}
		}
		o.Bias[id] = b
	}
	if err == nil && len(o.Bias) > mostBias {
		err = wrong("logit_bias", "got %d tokens, want at most %d", len(o.Bias), mostBias)
	}
	if err == nil && o.Temperature > 2 && o.Temperature != standard.Temperature {
		err = wrong("temperature", "got %v, want 0 to 2", o.Temperature)
	}
	if fault := o.Check(); err == nil && fault != nil {
		param, _, _ := strings.Cut(fault.Error(), ":")
		err = &apiError{param: param, text: strings.TrimSuffix(fault.Error(), ": "+sampling.ErrOptions.Error())}
	}
	return o, err
}

const (
	mostBias    = 1024
	mostStops   = 16
	mostStop    = 1024 // bytes of a stop word
	mostChoices = 128
	mostTop     = 20 // logarithms of probabilities with each token
)
