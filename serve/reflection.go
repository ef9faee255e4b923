package serve

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/tenure-go/tenure/serve/internal/grpc"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// reflect answers questions about the services: it is the server reflection of
// gRPC.
func (s *Server) reflect(c *call) error {
	defer context.AfterFunc(s.refusing, c.endStream)()
	m := offered().methods[c.r.URL.Path]
	for {
		data, err := c.message(true)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		in, err := m.Input.Decode(data)
		if err != nil {
			return grpc.Errorf(grpc.InvalidArgument, "%v", err)
		}
		out := answerReflection(in)
		out["valid_host"], out["original_request"] = in["host"], in
		if data, err = m.Output.Encode(out); err == nil {
			err = c.flush(c.send(data))
		}
		if err != nil {
			return err
		}
	}
}

func answerReflection(in map[string]any) map[string]any {
	files := offered().files
	file := func(has func(f *protobuf.File) bool) map[string]any {
		for _, f := range files {
			if has(f) {
				return map[string]any{"file_descriptor_response": map[string]any{"file_descriptor_proto": []any{f.Descriptor()}}}
			}
		}
		return map[string]any{"error_response": map[string]any{"error_code": int64(grpc.NotFound), "error_message": "not found"}}
	}
	switch {
	case in["list_services"] != nil:
		var list []any
		for _, f := range files {
			for _, s := range f.Services {
				list = append(list, map[string]any{"name": s.Name})
			}
		}
		return map[string]any{"list_services_response": map[string]any{"service": list}}
	case in["file_by_filename"] != nil:
		return file(func(f *protobuf.File) bool { return f.Name == text(in, "file_by_filename") })
	case in["file_containing_symbol"] != nil:
		symbol := strings.TrimPrefix(text(in, "file_containing_symbol"), ".")
		return file(func(f *protobuf.File) bool { return f.Has(symbol) })
	case in["all_extension_numbers_of_type"] != nil:
		name := text(in, "all_extension_numbers_of_type")
		for _, f := range files {
			if f.Has(name) {
				return map[string]any{"all_extension_numbers_response": map[string]any{"base_type_name": name}}
			}
		}
	case in["file_containing_extension"] == nil:
		return map[string]any{"error_response": map[string]any{"error_code": int64(grpc.InvalidArgument), "error_message": "got no question, want one"}}
	}
	return file(func(*protobuf.File) bool { return false })
}
