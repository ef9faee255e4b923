package protobuf

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxDepth is how deep messages may be nested.
const maxDepth = 32

// Decode reads a message: int64, uint64, float64, bool, string and []byte for
// the fields of these types, names for enums where they have one, a
// map[string]any for messages and maps, and []any for repeated fields. Fields
// that are not set are left out, and those that are not declared skipped.
func (m *Message) Decode(data []byte) (map[string]any, error) {
	v := map[string]any{}
	return v, m.decode(v, data, 0)
}

// decode adds the fields of a message to v.
func (m *Message) decode(v map[string]any, data []byte, depth int) error {
	if depth == maxDepth {
		return wiref("got more than %d messages within each other", maxDepth)
	}
	return Fields(data, func(number int, w Value) error {
		x := m.byNumber[number]
		if x == nil {
			return nil
		}
		if err := m.decodeField(v, x, w, depth); err != nil {
			return fmt.Errorf("%s.%s: %w", m.Name, x.name, err)
		}
		return nil
	})
}

func (m *Message) decodeField(v map[string]any, x *field, w Value, depth int) error {
	if x.kind.form() != Bytes && x.repeated {
		list, _ := v[x.name].([]any)
		err := Packed(x.kind.form(), w, func(n uint64) error {
			list = append(list, x.value(n))
			return nil
		})
		v[x.name] = list
		return err
	}
	if w.Form != x.kind.form() {
		return wiref("got the wire type %d, want %d", w.Form, x.kind.form())
	}
	if x.oneof >= 0 {
		for _, other := range m.fields {
			if other.oneof == x.oneof && other != x {
				delete(v, other.name)
			}
		}
	}
	var value any
	switch x.kind {
	case kindString:
		if !utf8.Valid(w.Data) {
			return wiref("got a string that is not UTF-8")
		}
		value = string(w.Data)
	case kindBytes:
		value = slices.Clone(w.Data)
	case kindMessage:
		part := map[string]any{}
		if old, ok := v[x.name].(map[string]any); ok && !x.repeated {
			part = old // parts of one message are merged
		}
		if err := x.message.decode(part, w.Data, depth+1); err != nil {
			return err
		}
		if x.message.entry {
			all, _ := v[x.name].(map[string]any)
			if all == nil {
				all = map[string]any{}
				v[x.name] = all
			}
			all[fmt.Sprint(or(part["key"], x.message.fields[0].zero()))] = or(part["value"], x.message.fields[1].zero())
			return nil
		}
		value = part
	default:
		value = x.value(w.Number)
	}
	if x.repeated {
		list, _ := v[x.name].([]any)
		value = append(list, value)
	}
	v[x.name] = value
	return nil
}

func or(v, otherwise any) any {
	if v == nil {
		return otherwise
	}
	return v
}

// zero is the value of a part of a map's element that was left out.
func (x *field) zero() any {
	switch x.kind {
	case kindString:
		return ""
	case kindBytes:
		return []byte(nil)
	case kindMessage:
		return map[string]any{}
	}
	return x.value(0)
}

func (x *field) value(n uint64) any {
	switch x.kind {
	case kindBool:
		return n != 0
	case kindInt32:
		return int64(int32(n))
	case kindInt64:
		return int64(n)
	case kindUint32:
		return uint64(uint32(n))
	case kindFloat:
		return float64(math.Float32frombits(uint32(n)))
	case kindDouble:
		return math.Float64frombits(n)
	case kindEnum:
		if i := slices.Index(x.enum.numbers, int(int32(n))); i >= 0 {
			return x.enum.names[i]
		}
		return int64(int32(n))
	}
	return n
}

// Encode writes a message. The values are those of [Message.Decode], or those
// of encoding/json; nil and what is not declared are left out.
func (m *Message) Encode(v map[string]any) ([]byte, error) {
	var b []byte
	for _, x := range m.fields {
		value := v[x.name]
		if value == nil {
			continue
		}
		var err error
		switch {
		case x.kind == kindMessage && x.message.entry:
			b, err = x.appendMap(b, value)
		case x.repeated:
			list, ok := value.([]any)
			if !ok {
				err = fmt.Errorf("got %T, want a list", value)
			}
			for _, e := range list {
				if err == nil {
					b, err = x.append(b, e, true)
				}
			}
		default:
			b, err = x.append(b, value, x.oneof >= 0)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", m.Name, x.name, err)
		}
	}
	return b, nil
}

func (x *field) appendMap(b []byte, value any) ([]byte, error) {
	all, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("got %T, want a map", value)
	}
	key, content := x.message.fields[0], x.message.fields[1]
	for _, k := range slices.Sorted(maps.Keys(all)) {
		var name any = k
		if key.kind != kindString {
			name = json.Number(k)
		}
		part, err := key.append(nil, name, false)
		if err == nil {
			part, err = content.append(part, all[k], false)
		}
		if err != nil {
			return nil, err
		}
		b = AppendBytes(b, x.number, part)
	}
	return b, nil
}

// append appends the field, also if its value is zero where always says so.
func (x *field) append(b []byte, value any, always bool) ([]byte, error) {
	switch x.kind {
	case kindMessage:
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("got %T, want a message", value)
		}
		part, err := x.message.Encode(fields)
		if err != nil {
			return nil, err
		}
		return AppendBytes(b, x.number, part), nil
	case kindString, kindBytes:
		var data []byte
		switch s := value.(type) {
		case []byte:
			data = s
		case string:
			data = []byte(s)
			if x.kind == kindBytes {
				var err error
				if data, err = base64.StdEncoding.DecodeString(s); err != nil {
					return nil, err
				}
			}
		default:
			return nil, fmt.Errorf("got %T, want a string", value)
		}
		if len(data) > 0 || always {
			b = AppendBytes(b, x.number, data)
		}
		return b, nil
	}
	n, err := x.bits(value)
	if err != nil || n == 0 && !always {
		return b, err
	}
	b = AppendTag(b, x.number, x.kind.form())
	switch x.kind.form() {
	case Fixed32:
		return binary.LittleEndian.AppendUint32(b, uint32(n)), nil
	case Fixed64:
		return binary.LittleEndian.AppendUint64(b, n), nil
	}
	return binary.AppendUvarint(b, n), nil
}

// bits is the number that is written for a value.
func (x *field) bits(value any) (uint64, error) {
	if name, ok := value.(string); ok && x.kind == kindEnum {
		if i := slices.Index(x.enum.names, name); i >= 0 {
			return uint64(x.enum.numbers[i]), nil
		}
		return 0, fmt.Errorf("got %q, want one of %v", name, x.enum.names)
	}
	if v, ok := value.(bool); ok && x.kind == kindBool {
		return flag(v), nil
	}
	text := fmt.Sprint(value)
	switch x.kind {
	case kindInt32, kindEnum:
		n, err := strconv.ParseInt(text, 10, 32)
		return uint64(n), err
	case kindInt64:
		n, err := strconv.ParseInt(text, 10, 64)
		return uint64(n), err
	case kindUint32:
		return strconv.ParseUint(text, 10, 32)
	case kindUint64:
		return strconv.ParseUint(text, 10, 64)
	case kindFloat:
		v, err := strconv.ParseFloat(text, 32)
		return uint64(math.Float32bits(float32(v))), err
	case kindDouble:
		v, err := strconv.ParseFloat(text, 64)
		return math.Float64bits(v), err
	}
	return 0, fmt.Errorf("got %T, want a bool", value)
}
