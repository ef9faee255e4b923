package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ReadJSON reads a plan document and validates it. It is strict, because bytes
// are written where the document says: every field has to be there, once, under
// its exact name, and nothing else may be. Only three are left out where they
// are empty, 0 or false: the strides of a value, the bytes that a step moves,
// and whether an input is donated. The error is an ErrDocument, or that of r.
func ReadJSON(r io.Reader) (*Plan, error) {
	d := documentReader{json.NewDecoder(r)}
	d.UseNumber()
	p := &Plan{}
	if err := d.read(reflect.ValueOf(p).Elem(), ""); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, docErr("end: got more text at byte %d, want one document", d.InputOffset())
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// UnmarshalJSON reads p as ReadJSON does.
func (p *Plan) UnmarshalJSON(text []byte) error {
	read, err := ReadJSON(bytes.NewReader(text))
	if err == nil {
		*p = *read
	}
	return err
}

// A documentReader fills Go values from JSON text, field by field.
type documentReader struct{ *json.Decoder }

func (d documentReader) token(path string) (json.Token, error) {
	token, err := d.Token()
	var syntax *json.SyntaxError
	switch {
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, docErr("%s: got the end of the text at byte %d, want a complete document", name(path), d.InputOffset())
	case errors.As(err, &syntax):
		return nil, docErr("%s: json at byte %d: %w", name(path), d.InputOffset(), err)
	case err != nil:
		return nil, fmt.Errorf("plan: %w", err)
	}
	return token, nil
}

// name is how errors call the place in the document that path leads to.
func name(path string) string {
	if path == "" {
		return "document"
	}
	return path
}

func (d documentReader) read(v reflect.Value, path string) error {
	token, err := d.token(path)
	if err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.Struct:
		if token != json.Delim('{') {
			return docErr("%s: got %s, want an object", name(path), describe(token))
		}
		return d.readFields(v, path)
	case reflect.Slice:
		if token != json.Delim('[') {
			return docErr("%s: got %s, want a list", name(path), describe(token))
		}
		return d.readList(v, path)
	case reflect.String:
		text, ok := token.(string)
		if !ok {
			return docErr("%s: got %s, want a string", name(path), describe(token))
		}
		v.SetString(text)
	case reflect.Bool:
		is, ok := token.(bool)
		if !ok {
			return docErr("%s: got %s, want true or false", name(path), describe(token))
		}
		v.SetBool(is)
	case reflect.Int, reflect.Int64:
		number, _ := token.(json.Number)
		n, err := strconv.ParseInt(number.String(), 10, 64)
		if err != nil || n < 0 || n > MaxBytes || v.OverflowInt(n) {
			return docErr("%s: got %s, want a whole number from 0 to %d", name(path), describe(token), int64(MaxBytes))
		}
		v.SetInt(n)
	default:
		panic("BUG: plan: field of kind " + v.Kind().String() + " in a document")
	}
	return nil
}

func (d documentReader) readFields(v reflect.Value, path string) error {
	fields := fieldNames(v.Type())
	seen := make([]bool, len(fields))
	for d.More() {
		token, err := d.token(path)
		if err != nil {
			return err
		}
		key, ok := token.(string)
		i := slices.Index(fields, key)
		switch {
		case !ok || i < 0:
			return docErr("%s: got field %s, want one of %q", name(path), describe(token), fields)
		case seen[i]:
			return docErr("%s: got field %q a second time, want it once", name(path), key)
		}
		seen[i] = true
		at := key
		if path != "" {
			at = path + "." + key
		}
		if err := d.read(v.Field(i), at); err != nil {
			return err
		}
		if isOptional(v.Type().Field(i)) && (v.Field(i).IsZero() || v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0) {
			return docErr("%s: got %s, want another value or no such field", at, emptyOf(v.Field(i)))
		}
		// Checked at once, so that a document of another format is named as
		// such and not by a field that it adds.
		if at == "format" && v.Field(i).Int() != Format {
			return docErr("format: got %d, want %d", v.Field(i).Int(), Format)
		}
	}
	if _, err := d.token(path); err != nil {
		return err
	}
	for i, there := range seen {
		if !there && !isOptional(v.Type().Field(i)) {
			return docErr("%s: got no field %q, want it", name(path), fields[i])
		}
	}
	return nil
}

func (d documentReader) readList(v reflect.Value, path string) error {
	for i := 0; d.More(); i++ {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := d.read(element, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	_, err := d.token(path)
	return err
}

// emptyOf returns what an empty value is called in errors.
func emptyOf(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		return "an empty list"
	}
	return fmt.Sprint(v)
}

// describe returns a short description of a token.
func describe(token json.Token) string {
	var text string
	switch t := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case json.Number:
		text = t.String()
	case string:
		text = strconv.Quote(t)
	default:
		text = fmt.Sprint(t)
	}
	const longest = 60
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return text
}

// fieldNames returns the JSON names of the fields of struct type t.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// isOptional reports whether a document leaves out the field where it is empty,
// and has it only where it is not.
func isOptional(f reflect.StructField) bool {
	return strings.HasSuffix(f.Tag.Get("json"), ",omitempty")
}

// WriteJSON writes p in the form that ReadJSON reads, with one line per step,
// value or other list entry. The same plan yields the same bytes. A plan that
// is not valid is not written.
func (p *Plan) WriteJSON(w io.Writer) error {
	text, err := p.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// MarshalJSON returns what WriteJSON writes.
func (p *Plan) MarshalJSON() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	writeDocument(&out, reflect.ValueOf(p).Elem(), 0)
	return out.Bytes(), nil
}

// writeDocument writes v. Depth 0 is the document itself and 1 its fields:
// both, and the entries of lists of objects, get lines of their own; deeper
// values stay on one line.
func writeDocument(out *bytes.Buffer, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		open, between, end := "{", ", ", "}"
		if depth == 0 {
			open, between, end = "{\n  ", ",\n  ", "\n}"
		}
		for i, field := range fieldNames(v.Type()) {
			if isOptional(v.Type().Field(i)) && v.Field(i).IsZero() {
				continue
			}
			out.WriteString(open)
			open = between
			fmt.Fprintf(out, "%q: ", field)
			writeDocument(out, v.Field(i), depth+1)
		}
		out.WriteString(end)
	case reflect.Slice:
		between, end := ", ", "]"
		out.WriteByte('[')
		if v.Type().Elem().Kind() == reflect.Struct && v.Len() > 0 {
			out.WriteString("\n    ")
			between, end = ",\n    ", "\n  ]"
		}
		for i := range v.Len() {
			if i > 0 {
				out.WriteString(between)
			}
			writeDocument(out, v.Index(i), depth+1)
		}
		out.WriteString(end)
	case reflect.String:
		text := json.NewEncoder(out)
		text.SetEscapeHTML(false)
		// A string cannot fail to encode. The encoder ends it with a newline.
		_ = text.Encode(v.String())
		out.Truncate(out.Len() - 1)
	case reflect.Bool:
		out.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int64:
		out.WriteString(strconv.FormatInt(v.Int(), 10))
	default:
		panic("BUG: plan: field of kind " + v.Kind().String() + " in a document")
	}
}
