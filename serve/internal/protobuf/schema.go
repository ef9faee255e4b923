package protobuf

import (
	"fmt"
	"strings"
)

// File is what a .proto file declares.
type File struct {
	Name, Package string
	Services      []*Service

	messages []*Message
	enums    []*enum
	all      map[string]*Message // by name in the package
	allEnums map[string]*enum
}

// Service is a service of a file.
type Service struct {
	Name    string // with its package
	Methods []*Method
}

// Method is a method of a service.
type Method struct {
	Name                  string
	Input, Output         *Message
	ClientStream          bool
	ServerStream          bool
	inputName, outputName string
}

// Message is a type of messages.
type Message struct {
	Name string // within the package

	fields   []*field
	oneofs   []string
	messages []*Message
	enums    []*enum
	entry    bool // it is an element of a map
	byNumber map[int]*field
}

type field struct {
	name     string
	number   int
	kind     kind
	repeated bool
	oneof    int    // -1 without one
	typeName string // of a message or enum, as it is written
	message  *Message
	enum     *enum
}

type enum struct {
	name    string // within the package
	names   []string
	numbers []int
}

// kind is a type of fields, by its number in descriptors.
type kind int

const (
	kindDouble  kind = 1
	kindFloat   kind = 2
	kindInt64   kind = 3
	kindUint64  kind = 4
	kindInt32   kind = 5
	kindBool    kind = 8
	kindString  kind = 9
	kindMessage kind = 11
	kindBytes   kind = 12
	kindUint32  kind = 13
	kindEnum    kind = 14
)

var kinds = map[string]kind{
	"double": kindDouble, "float": kindFloat, "int64": kindInt64, "uint64": kindUint64, "int32": kindInt32, "uint32": kindUint32,
	"bool": kindBool, "string": kindString, "bytes": kindBytes,
}

// form is the form in which a field of this kind is written.
func (k kind) form() int {
	switch k {
	case kindDouble:
		return Fixed64
	case kindFloat:
		return Fixed32
	case kindString, kindBytes, kindMessage:
		return Bytes
	}
	return Varint
}

// Message returns the message of a name, without the package. A name that is
// not there is a fault of the program.
func (f *File) Message(name string) *Message {
	if m := f.all[name]; m != nil {
		return m
	}
	panic(fmt.Sprintf("BUG: %s has no message %s", f.Name, name))
}

// Has reports whether the file declares a name, which has the package.
func (f *File) Has(symbol string) bool {
	name, ok := strings.CutPrefix(symbol, f.Package+".")
	if !ok {
		return false
	}
	if f.all[name] != nil || f.allEnums[name] != nil {
		return true
	}
	for _, s := range f.Services {
		method, ok := strings.CutPrefix(symbol, s.Name)
		if method == "" && ok {
			return true
		}
		for _, m := range s.Methods {
			if method == "."+m.Name {
				return true
			}
		}
	}
	return false
}

// resolve gives fields and methods the types that they name.
func (f *File) resolve() error {
	for _, m := range f.all {
		m.byNumber = map[int]*field{}
		for _, x := range m.fields {
			if m.byNumber[x.number] != nil {
				return fmt.Errorf("%s: message %s: got the number %d twice", f.Name, m.Name, x.number)
			}
			m.byNumber[x.number] = x
			if x.kind != 0 {
				continue
			}
			// From the message outwards.
			for scope := m.Name; ; scope, _, _ = cutLast(scope) {
				name := strings.TrimPrefix(scope+"."+x.typeName, ".")
				if x.message, x.enum = f.all[name], f.allEnums[name]; x.message != nil || x.enum != nil {
					break
				}
				if scope == "" {
					return fmt.Errorf("%s: message %s: field %s: got the type %s, which is not declared", f.Name, m.Name, x.name, x.typeName)
				}
			}
			x.kind = kindMessage
			if x.enum != nil {
				x.kind = kindEnum
			}
		}
	}
	for _, s := range f.Services {
		for _, m := range s.Methods {
			m.Input, m.Output = f.all[m.inputName], f.all[m.outputName]
			if m.Input == nil || m.Output == nil {
				return fmt.Errorf("%s: method %s: got a message that is not declared", f.Name, m.Name)
			}
		}
	}
	return nil
}

// cutLast cuts a name at its last dot.
func cutLast(name string) (before, after string, found bool) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}
