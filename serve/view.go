package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// What clients ask for beside inference, as values of JSON. HTTP answers with
// these, and gRPC with messages that have fields of the same names.

// version is that of the server, as clients see it: of the protocol.
const version = "2.0"

// metadataOfServer has the extensions of the protocol that are there. Clients
// decide by them.
func (s *Server) metadataOfServer() any {
	extensions := []string{"binary_tensor_data", "classification", "logging", "model_configuration", "model_repository", "parameters", "schedule_policy", "statistics"}
	if s.config.SharedMemory {
		extensions = append(extensions, "system_shared_memory")
	}
	return map[string]any{"name": s.config.Name, "version": version, "extensions": extensions}
}

// metadataOf describes a model.
func (s *Server) metadataOf(name, version string) (any, error) {
	m, err := s.use(name, version)
	if err != nil {
		return nil, err
	}
	defer m.done()
	versions := []string{}
	s.mu.Lock()
	e := s.models[m.name]
	for _, v := range slices.Sorted(maps.Keys(e.versions)) {
		versions = append(versions, strconv.Itoa(v))
	}
	for _, v := range slices.Sorted(maps.Keys(e.evicted)) {
		versions = append(versions, strconv.Itoa(v))
	}
	s.mu.Unlock()
	type described struct {
		Name     string `json:"name"`
		Datatype string `json:"datatype"`
		Shape    []int  `json:"shape"`
	}
	list := func(infos []tenure.Info) []described {
		all := []described{}
		for _, i := range infos {
			all = append(all, described{i.Name, typeName(i), dims(i)})
		}
		return all
	}
	return map[string]any{"name": m.name, "versions": versions, "platform": m.config.Platform, "inputs": list(m.inputs), "outputs": list(m.outputs)}, nil
}

// indexOf lists models, or those that are ready.
func (s *Server) indexOf(ready bool) ([]ModelState, error) {
	list, err := s.Models()
	if err != nil {
		return nil, err
	}
	shown := []ModelState{}
	for _, m := range list {
		if !ready || m.State == "READY" {
			shown = append(shown, m)
		}
	}
	return shown, nil
}

// errNotExplicit is the error of a server whose models its owner alone chooses.
var errNotExplicit = fmt.Errorf("explicit model load / unload is not allowed: the server was not started with it: %w", oip.ErrMessage)

// loadFor loads a model for a client.
func (s *Server) loadFor(ctx context.Context, name string, parameters map[string]any) error {
	if !s.config.Explicit {
		return errNotExplicit
	}
	var config *ModelConfig
	for key, value := range parameters {
		text, ok := value.(string)
		if key != "config" || !ok {
			return fmt.Errorf("got the parameter %q, want config, a string: files of models are not taken from requests: %w", key, oip.ErrMessage)
		}
		var err error
		if config, err = parseModelConfig([]byte(text)); err != nil {
			return fmt.Errorf("config: %w: %w", err, oip.ErrMessage)
		}
	}
	err := s.Load(ctx, name, config)
	if err != nil {
		s.config.Log.Error("a client's load failed", "error", err)
		if status(err) == http.StatusInternalServerError {
			return unloadable{err}
		}
	}
	return err
}

// unloadable is the error of a model that cannot be loaded: it is the file's
// fault, or the client's.
type unloadable struct{ error }

func (unloadable) Is(target error) bool { return target == oip.ErrMessage }

func (s *Server) unloadFor(ctx context.Context, name string) error {
	if !s.config.Explicit {
		return errNotExplicit
	}
	return s.Unload(ctx, name)
}

// configMessage is the configuration of a model as the message of gRPC has it:
// parameters are texts there.
func configMessage(c *ModelConfig) (map[string]any, error) {
	config, err := toMap(c)
	if err != nil {
		return nil, err
	}
	if parameters, ok := config["parameters"].(map[string]any); ok {
		for name, v := range parameters {
			if p, ok := v.(map[string]any); ok {
				if text, ok := p["string_value"].(string); ok {
					parameters[name] = map[string]any{"string_value": text}
					continue
				}
			}
			text, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			parameters[name] = map[string]any{"string_value": string(text)}
		}
	}
	return config, nil
}
