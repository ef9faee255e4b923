package serve

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// switches are the levels of the server's log that clients may turn off, and on
// again.
type switches struct{ off [3]atomic.Bool } // error, warning, info

// logged are the settings of logging that are switches.
var logged = []struct {
	name  string
	level slog.Level
}{{"log_error", slog.LevelError}, {"log_warning", slog.LevelWarn}, {"log_info", slog.LevelInfo}}

// switchedLog is a log with switches.
type switchedLog struct {
	slog.Handler
	switches *switches
}

func (l switchedLog) Enabled(ctx context.Context, level slog.Level) bool {
	for i, s := range logged {
		if level >= s.level {
			return !l.switches.off[i].Load() && l.Handler.Enabled(ctx, level)
		}
	}
	return l.Handler.Enabled(ctx, level)
}

func (l switchedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return switchedLog{l.Handler.WithAttrs(attrs), l.switches}
}

func (l switchedLog) WithGroup(name string) slog.Handler {
	return switchedLog{l.Handler.WithGroup(name), l.switches}
}

// logSettings are the settings of the log. Of those that cannot be changed here
// it has the values that hold.
func (s *Server) logSettings() map[string]any {
	v := map[string]any{"log_file": "", "log_format": "default", "log_verbose_level": 0}
	for _, l := range logged {
		v[l.name] = s.config.Log.Enabled(context.Background(), l.level)
	}
	return v
}

// setLog changes settings of the log, all of them or none.
func (s *Server) setLog(settings map[string]any) error {
	if len(settings) == 0 {
		return nil
	}
	if !s.config.Explicit {
		return fmt.Errorf("logging: got new settings, want none: the server was not started with it: %w", oip.ErrMessage)
	}
	have := s.logSettings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := settings[name]
		if _, known := have[name]; !known {
			return fmt.Errorf("logging: got the setting %.40q, want one of %v: %w", name, slices.Sorted(maps.Keys(have)), oip.ErrMessage)
		}
		i := slices.IndexFunc(logged, func(l struct {
			name  string
			level slog.Level
		}) bool {
			return l.name == name
		})
		if i < 0 {
			if fmt.Sprint(value) != fmt.Sprint(have[name]) {
				return fmt.Errorf("%s: got %v, want %v, which cannot be changed: %w", name, value, have[name], tenure.ErrUnsupported)
			}
			continue
		}
		on, ok := value.(bool)
		if !ok {
			return fmt.Errorf("%s: got %v, want true or false: %w", name, value, oip.ErrMessage)
		}
		if on && !s.log.Enabled(context.Background(), logged[i].level) {
			return fmt.Errorf("%s: got true, want false: the server's log was started without this level: %w", name, tenure.ErrUnsupported)
		}
	}
	for i, l := range logged {
		if on, ok := settings[l.name].(bool); ok {
			s.switches.off[i].Store(!on)
		}
	}
	return nil
}

// traceSettings are the settings of tracing: requests are not traced.
var traceSettings = map[string]any{"trace_level": []any{"OFF"}, "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0", "trace_file": "", "trace_mode": "triton"}

// traceOf checks new settings of tracing, of which none can be changed, and
// returns those that hold.
func (s *Server) traceOf(model string, settings map[string]any) (map[string]any, error) {
	if model != "" {
		m, err := s.use(model, "")
		if err != nil {
			return nil, err
		}
		m.done()
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		have, known := traceSettings[name]
		if !known {
			return nil, fmt.Errorf("tracing: got the setting %.40q, want one of %v: %w", name, slices.Sorted(maps.Keys(traceSettings)), oip.ErrMessage)
		}
		if v := settings[name]; v != nil && !sameSetting(v, have) {
			return nil, fmt.Errorf("%s: got %v, want %v: requests are not traced here: %w", name, v, have, tenure.ErrUnsupported)
		}
	}
	return traceSettings, nil
}

// sameSetting compares a setting, which may be a list of one, with what holds.
func sameSetting(a, b any) bool {
	one := func(v any) any {
		if list, ok := v.([]any); ok && len(list) == 1 {
			return list[0]
		}
		return v
	}
	list, ok := a.([]any)
	return ok && len(list) == 0 || fmt.Sprint(one(a)) == fmt.Sprint(one(b))
}

// settingRoutes adds the pages of settings.
func (s *Server) settingRoutes(handle func(pattern string, f func(w http.ResponseWriter, r *http.Request) error)) {
	page := func(set func(r *http.Request, settings map[string]any) (map[string]any, error)) func(w http.ResponseWriter, r *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			settings := map[string]any{}
			if r.Method == http.MethodPost {
				if err := s.control(w, r, &settings); err != nil {
					return err
				}
			}
			v, err := set(r, settings)
			if err != nil {
				return err
			}
			return answerJSON(w, http.StatusOK, v)
		}
	}
	logging := page(func(_ *http.Request, settings map[string]any) (map[string]any, error) {
		err := s.setLog(settings)
		return s.logSettings(), err
	})
	trace := page(func(r *http.Request, settings map[string]any) (map[string]any, error) {
		return s.traceOf(r.PathValue("model"), settings)
	})
	for _, method := range []string{"GET ", "POST "} {
		handle(method+"/v2/logging", logging)
		handle(method+"/v2/trace/setting", trace)
		handle(method+"/v2/models/{model}/trace/setting", trace)
	}
}
