package serve

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// smallAnswer is how long a client has to take an answer without tensors.
const smallAnswer = 30 * time.Second

// maxControl is how many bytes a request may have that carries no tensors.
const maxControl = 1 << 20

// routes are what the server answers.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				s.refuse(w, r, err)
			}
		})
	}
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		open(pattern, func(w http.ResponseWriter, r *http.Request) error {
			if !s.admits(r) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return s.answerError(w, http.StatusUnauthorized, errors.New("got no token, or another one, want that of the server"))
			}
			return f(w, r)
		})
	}
	open("GET /v2/health/live", func(w http.ResponseWriter, _ *http.Request) error {
		return answerJSON(w, http.StatusOK, map[string]bool{"live": true})
	})
	open("GET /v2/health/ready", s.health)
	open("GET /healthz", s.health)
	handle("GET /v2", func(w http.ResponseWriter, _ *http.Request) error {
		return answerJSON(w, http.StatusOK, s.metadataOfServer())
	})
	handle("GET /v2/models/stats", s.statisticsPage)
	for _, prefix := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		handle("GET "+prefix, s.metadata)
		handle("GET "+prefix+"/ready", s.modelReady)
		handle("GET "+prefix+"/config", s.modelConfig)
		handle("GET "+prefix+"/stats", s.statisticsPage)
		handle("POST "+prefix+"/infer", s.infer)
		handle("POST "+prefix+"/plan", s.planPage)
	}
	handle("POST /v2/repository/index", s.index)
	handle("POST /v2/repository/models/{model}/load", s.loadPage)
	handle("POST /v2/repository/models/{model}/unload", s.unloadPage)
	handle("GET /metrics", s.metrics)
	s.regionRoutes(handle)
	s.settingRoutes(handle)
	if s.config.Pprof {
		for pattern, f := range map[string]http.HandlerFunc{"/debug/pprof/": pprof.Index, "/debug/pprof/cmdline": pprof.Cmdline, "/debug/pprof/profile": pprof.Profile, "/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace} {
			handle(pattern, func(w http.ResponseWriter, r *http.Request) error { f(w, r); return nil })
		}
		handle("/debug/pprof/tenure", func(w http.ResponseWriter, _ *http.Request) error { return memory.WriteProfile(w) })
	}
	s.openAIRoutes(mux)
	open("/", func(_ http.ResponseWriter, r *http.Request) error {
		return fmt.Errorf("%s %s is %w", r.Method, r.URL.Path, ErrNotFound)
	})
	return mux
}

// admits reports whether a request bears the token of the server.
func (s *Server) admits(r *http.Request) bool {
	if s.config.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(token), []byte(s.config.Token)) == 1
}

func answerJSON(w http.ResponseWriter, code int, v any) error {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // nobody takes it for a page
	if err := e.Encode(v); err != nil {
		return err
	}
	return answerText(w, code, body.Bytes())
}

func answerText(w http.ResponseWriter, code int, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(smallAnswer))
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that has gone needs no answer
	return nil
}

// answerError writes an error in the form of the protocol.
func (s *Server) answerError(w http.ResponseWriter, code int, err error) error {
	return answerJSON(w, code, map[string]string{"error": err.Error()})
}

// refuse answers a request that failed before its answer began.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errStopped) {
		return // nobody reads it, and the answer may have begun
	}
	code := status(err)
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	text := err
	if code == http.StatusInternalServerError {
		s.config.Log.Error("a request failed", "path", r.URL.Path, "error", err)
		line, _, _ := strings.Cut(err.Error(), "\n") // the stack of a fault is for the log
		text = errors.New(line)
	}
	_ = s.answerError(w, code, text)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	ready, code := s.isReady(), http.StatusOK
	if !ready {
		code = http.StatusServiceUnavailable
	}
	return answerJSON(w, code, map[string]bool{"live": true, "ready": ready})
}

// modelOf returns the model that a request names, with a use.
func (s *Server) modelOf(r *http.Request) (*model, error) {
	return s.use(r.PathValue("model"), r.PathValue("version"))
}

func (s *Server) metadata(w http.ResponseWriter, r *http.Request) error {
	v, err := s.metadataOf(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, v)
}

func (s *Server) modelReady(w http.ResponseWriter, r *http.Request) error {
	m, err := s.modelOf(r)
	if err != nil {
		return err
	}
	defer m.done()
	return answerJSON(w, http.StatusOK, map[string]any{"name": m.name, "ready": true})
}

func (s *Server) modelConfig(w http.ResponseWriter, r *http.Request) error {
	m, err := s.modelOf(r)
	if err != nil {
		return err
	}
	defer m.done()
	return answerJSON(w, http.StatusOK, m.config)
}

func (s *Server) statisticsPage(w http.ResponseWriter, r *http.Request) error {
	v, err := s.statisticsOf(r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, v)
}

// control reads the JSON of a request without tensors into v; nothing at all
// is an empty object.
func (s *Server) control(w http.ResponseWriter, r *http.Request, v any) error {
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(s.config.Stall))
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxControl))
	if err != nil {
		return (&body{}).fault(err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w: %w", err, oip.ErrMessage)
	}
	return nil
}

func (s *Server) index(w http.ResponseWriter, r *http.Request) error {
	var wanted struct {
		Ready bool `json:"ready"`
	}
	if err := s.control(w, r, &wanted); err != nil {
		return err
	}
	list, err := s.indexOf(wanted.Ready)
	if err != nil {
		return err
	}
	return answerJSON(w, http.StatusOK, list)
}

func (s *Server) loadPage(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Parameters map[string]any `json:"parameters"`
	}
	err := s.control(w, r, &request)
	if err == nil {
		err = s.loadFor(r.Context(), r.PathValue("model"), request.Parameters)
	}
	if err != nil {
		return err
	}
	return answerText(w, http.StatusOK, nil)
}

func (s *Server) unloadPage(w http.ResponseWriter, r *http.Request) error {
	if err := s.unloadFor(r.Context(), r.PathValue("model")); err != nil {
		return err
	}
	return answerText(w, http.StatusOK, nil)
}

// planPage says what a request of given shapes would take. The request is one
// for inference, with the names and shapes of the inputs alone.
func (s *Server) planPage(w http.ResponseWriter, r *http.Request) error {
	m, err := s.useToRun(r.Context(), r.PathValue("model"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.done()
	var request struct {
		Inputs []struct {
			Name  string `json:"name"`
			Shape []int  `json:"shape"`
		} `json:"inputs"`
	}
	if err := s.control(w, r, &request); err != nil {
		return err
	}
	shapes := tenure.Shapes{}
	for _, in := range request.Inputs {
		if _, err := oip.Elements(in.Shape); err != nil {
			return fmt.Errorf("input %q: %w", in.Name, err)
		}
		shapes[in.Name] = in.Shape
	}
	for _, i := range m.inputs {
		if dims, ok := shapes[i.Name]; ok && i.Text {
			shapes[i.Name] = append(dims, leastWidth)
		}
	}
	select {
	case m.planner <- struct{}{}:
		defer func() { <-m.planner }()
	case <-r.Context().Done():
		return errStopped
	}
	d, err := guarded(func() (*plan.Plan, error) { return m.m.Plan(r.Context(), shapes, m.options...) })
	if err != nil {
		return err
	}
	p, f := m.figures(d), s.memory.figures()
	c := claim{account: m.account, bytes: p.io, arena: p.arena, weights: p.weights}
	s.memory.mu.Lock()
	growth := c.growth()
	s.memory.mu.Unlock()
	return answerJSON(w, http.StatusOK, map[string]any{
		"model_name": m.name, "model_version": strconv.Itoa(m.version),
		"arena_bytes": d.ArenaBytes, "scratch_bytes": d.ScratchBytes, "io_bytes": d.IOBytes, "weight_bytes": d.WeightBytes,
		"instances": m.account.instances, "request_bytes": p.io, "more_bytes": growth,
		"budget_bytes": f.budget, "promised_bytes": f.used, "fits_now": growth <= f.budget-f.used, "unpromised_values": len(d.Unpromised),
	})
}
