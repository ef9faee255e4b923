// Package protobuf reads and writes messages of Protocol Buffers by the text of
// their .proto files, for servers that have few messages, none of them in a hot
// path, and want no generated code.
//
//	f, err := protobuf.Parse("health.proto", text)
//	m := f.Message("HealthCheckRequest")
//	v, err := m.Decode(data)                             // a map[string]any
//	data, err = f.Message("HealthCheckResponse").Encode(map[string]any{"status": "SERVING"})
//	set := f.Descriptor()                                // for server reflection
//
// [Parse] knows the third version of the language without imports, options,
// groups and extensions. [Fields] reads the fields of a message without a
// schema, and [AppendTag] and the functions beside it write them: messages that
// carry tensors are read by these.
//
// # Memory and concurrency
//
// What [Message.Decode] returns has no bytes of the message. [Fields] passes
// parts of it on. A [File] does not change once it is read; everything may be
// called from any goroutine.
package protobuf

import (
	"errors"
	"fmt"
)

// ErrWire is the kind of every error about bytes that are no message.
var ErrWire = errors.New("invalid protobuf message")

func wiref(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrWire)...)
}
