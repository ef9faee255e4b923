package serve

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/serve/internal/grpc"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// The declarations of the services.
var (
	//go:embed proto/inference.proto
	inferenceProto string
	//go:embed proto/health.proto
	healthProto string
	//go:embed proto/reflection.proto
	reflectionProto string
)

// method is a method of a service.
type method struct {
	*protobuf.Method
	open  bool // for clients without the token, too
	serve func(c *call) error
}

// services are what the server has, by the paths of methods, and the files that
// declare it.
type services struct {
	methods map[string]*method
	files   []*protobuf.File
}

// plain is a method that reads one message and answers with another one.
type plain func(s *Server, c *call, in map[string]any) (map[string]any, error)

var (
	readOnce     sync.Once
	readServices *services
)

// offered are the services. They are read when the first call comes.
func offered() *services {
	readOnce.Do(func() { readServices = readProtos() })
	return readServices
}

func readProtos() *services {
	all := &services{methods: map[string]*method{}}
	add := func(name, text string, plains map[string]plain, streams map[string]func(s *Server, c *call) error) {
		f, err := protobuf.Parse(name, text)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		all.files = append(all.files, f)
		for _, service := range f.Services {
			for _, m := range service.Methods {
				method := &method{Method: m, open: openMethods[m.Name]}
				if f := plains[m.Name]; f != nil {
					method.serve = func(c *call) error { return c.plain(method, f) }
				} else if f := streams[m.Name]; f != nil {
					method.serve = func(c *call) error { return f(c.server, c) }
				} else {
					panic("BUG: nothing serves the method " + m.Name)
				}
				all.methods["/"+service.Name+"/"+m.Name] = method
			}
		}
	}
	add("inference.proto", inferenceProto, inferenceMethods, map[string]func(s *Server, c *call) error{
		"ModelInfer": (*Server).modelInfer, "ModelStreamInfer": (*Server).modelStreamInfer,
	})
	add("health.proto", healthProto, map[string]plain{"Check": checkHealth, "List": listHealth}, map[string]func(s *Server, c *call) error{"Watch": (*Server).watchHealth})
	reflection := map[string]func(s *Server, c *call) error{"ServerReflectionInfo": (*Server).reflect}
	add("reflection.proto", reflectionProto, nil, reflection)
	add("reflection_v1alpha.proto", strings.Replace(reflectionProto, "package grpc.reflection.v1;", "package grpc.reflection.v1alpha;", 1), nil, reflection)
	return all
}

// openMethods are those by which others find out whether the server works.
var openMethods = map[string]bool{"ServerLive": true, "ServerReady": true, "Check": true, "List": true, "Watch": true}

// methodOf returns the method of a path.
func methodOf(path string) (*method, error) {
	if m := offered().methods[path]; m != nil {
		return m, nil
	}
	service, name, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	for _, f := range offered().files {
		for _, s := range f.Services {
			if s.Name == service {
				return nil, grpc.Errorf(grpc.Unimplemented, "unknown method %.100s for service %s", name, service)
			}
		}
	}
	return nil, grpc.Errorf(grpc.Unimplemented, "unknown service %.100s", service)
}

// plain serves a method with one message and one answer.
func (c *call) plain(m *method, f plain) error {
	data, err := c.message(false)
	if err != nil {
		return err
	}
	in, err := m.Input.Decode(data)
	if err != nil {
		return grpc.Errorf(grpc.InvalidArgument, "%v", err)
	}
	out, err := f(c.server, c, in)
	if err == nil {
		data, err = m.Output.Encode(out)
	}
	if err != nil {
		return err
	}
	return c.send(data)
}

// toMap makes a map of a value of JSON.
func toMap(v any) (map[string]any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	m := map[string]any{}
	return m, d.Decode(&m)
}

func text(in map[string]any, name string) string {
	s, _ := in[name].(string)
	return s
}

// named is a method of which the request has the name and version of a model.
func named(f func(s *Server, name, version string) (any, error)) plain {
	return func(s *Server, _ *call, in map[string]any) (map[string]any, error) {
		v, err := f(s, text(in, "name"), text(in, "version"))
		if err != nil {
			return nil, err
		}
		return toMap(v)
	}
}

// parameters are the values of a map of parameters; nil for one without.
func parameters(in map[string]any, name string) map[string]any {
	list, _ := in[name].(map[string]any)
	values := map[string]any{}
	for key, v := range list {
		values[key] = nil
		if choice, ok := v.(map[string]any); ok {
			for _, value := range choice {
				values[key] = value
			}
		}
	}
	return values
}

// inferenceMethods are the methods of the inference service that carry no
// tensors.
var inferenceMethods = map[string]plain{
	"ServerLive": func(*Server, *call, map[string]any) (map[string]any, error) { return map[string]any{"live": true}, nil },
	"ServerReady": func(s *Server, _ *call, _ map[string]any) (map[string]any, error) {
		return map[string]any{"ready": s.isReady()}, nil
	},
	"ServerMetadata": func(s *Server, _ *call, _ map[string]any) (map[string]any, error) { return toMap(s.metadataOfServer()) },
	"ModelReady": named(func(s *Server, name, version string) (any, error) {
		m, err := s.use(name, version)
		if err == nil {
			m.done()
		}
		return map[string]any{"ready": err == nil}, nil
	}),
	"ModelMetadata":   named((*Server).metadataOf),
	"ModelStatistics": named((*Server).statisticsOf),
	"ModelConfig": named(func(s *Server, name, version string) (any, error) {
		m, err := s.use(name, version)
		if err != nil {
			return nil, err
		}
		defer m.done()
		config, err := configMessage(m.config)
		return map[string]any{"config": config}, err
	}),
	"RepositoryIndex": func(s *Server, _ *call, in map[string]any) (map[string]any, error) {
		ready, _ := in["ready"].(bool)
		list, err := s.indexOf(ready)
		if err != nil {
			return nil, err
		}
		return toMap(map[string]any{"models": list})
	},
	"RepositoryModelLoad": func(s *Server, c *call, in map[string]any) (map[string]any, error) {
		return nil, s.loadFor(c.ctx, text(in, "model_name"), parameters(in, "parameters"))
	},
	"RepositoryModelUnload": func(s *Server, c *call, in map[string]any) (map[string]any, error) {
		return nil, s.unloadFor(c.ctx, text(in, "model_name"))
	},
	"SystemSharedMemoryStatus": func(s *Server, _ *call, in map[string]any) (map[string]any, error) {
		list, err := s.regions.list(text(in, "name"))
		if err != nil {
			return nil, err
		}
		all := map[string]*region{}
		for _, r := range list {
			all[r.Name] = r
		}
		return toMap(map[string]any{"regions": all})
	},
	"SystemSharedMemoryRegister": func(s *Server, c *call, in map[string]any) (map[string]any, error) {
		offset, _ := in["offset"].(uint64)
		size, _ := in["byte_size"].(uint64)
		return nil, s.register(c.r, text(in, "name"), text(in, "key"), int64(offset), int64(size)) // negative ones are refused
	},
	"SystemSharedMemoryUnregister": func(s *Server, _ *call, in map[string]any) (map[string]any, error) {
		return nil, s.regions.remove(text(in, "name"))
	},
	"CudaSharedMemoryStatus": func(_ *Server, _ *call, in map[string]any) (map[string]any, error) {
		if name := text(in, "name"); name != "" {
			return nil, unknownDeviceRegion(name)
		}
		return nil, nil
	},
	"CudaSharedMemoryRegister": func(_ *Server, _ *call, in map[string]any) (map[string]any, error) {
		return nil, noDeviceRegion(text(in, "name"))
	},
	"CudaSharedMemoryUnregister": func(*Server, *call, map[string]any) (map[string]any, error) { return nil, nil },
	"TraceSetting": func(s *Server, _ *call, in map[string]any) (map[string]any, error) {
		have, err := s.traceOf(text(in, "model_name"), parameters(in, "settings"))
		if err != nil {
			return nil, err
		}
		settings := map[string]any{}
		for name, v := range have {
			list, ok := v.([]any)
			if !ok {
				list = []any{v}
			}
			settings[name] = map[string]any{"value": list}
		}
		return map[string]any{"settings": settings}, nil
	},
	"LogSettings": func(s *Server, _ *call, in map[string]any) (map[string]any, error) {
		if err := s.setLog(parameters(in, "settings")); err != nil {
			return nil, err
		}
		settings := map[string]any{}
		for name, v := range s.logSettings() {
			kind := map[string]string{"bool": "bool_param", "int": "uint32_param", "string": "string_param"}[fmt.Sprintf("%T", v)]
			settings[name] = map[string]any{kind: v}
		}
		return map[string]any{"settings": settings}, nil
	},
}

// healthOf is the standing of a service, as the health service says it.
func (s *Server) healthOf(service string) (status string, changed <-chan struct{}) {
	ready, changed := s.watch()
	switch {
	case service != "" && service != "inference.GRPCInferenceService":
		return "SERVICE_UNKNOWN", changed
	case ready:
		return "SERVING", changed
	}
	return "NOT_SERVING", changed
}

func checkHealth(s *Server, _ *call, in map[string]any) (map[string]any, error) {
	status, _ := s.healthOf(text(in, "service"))
	if status == "SERVICE_UNKNOWN" {
		return nil, grpc.Errorf(grpc.NotFound, "unknown service %.100q", text(in, "service"))
	}
	return map[string]any{"status": status}, nil
}

func listHealth(s *Server, _ *call, _ map[string]any) (map[string]any, error) {
	status, _ := s.healthOf("")
	one := map[string]any{"status": status}
	return map[string]any{"statuses": map[string]any{"": one, "inference.GRPCInferenceService": one}}, nil
}

// watchHealth says how the server stands whenever that changes.
func (s *Server) watchHealth(c *call) error {
	m := offered().methods["/grpc.health.v1.Health/Watch"]
	data, err := c.message(false)
	if err != nil {
		return err
	}
	in, err := m.Input.Decode(data)
	if err != nil {
		return grpc.Errorf(grpc.InvalidArgument, "%v", err)
	}
	for before := ""; ; {
		status, changed := s.healthOf(text(in, "service"))
		if status != before {
			data, err := m.Output.Encode(map[string]any{"status": status})
			if err == nil {
				err = c.flush(c.send(data))
			}
			if err != nil {
				return err
			}
			before = status
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-s.refusing.Done():
			return ErrClosed
		}
	}
}
