package op_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// A line of testdata/infer/*.txt is one call and what its shape rule must say:
//
//	add f32[2,3] f32[3] -> f32[2,3] ; same(0)
//	reshape f32[2,3] i64[2]{3,-1} -> f32[3,2] ; view(0)
//	split f32[4,2] axis=0 num_outputs=2 -> f32[2,2] f32[2,2] ; view(0)>0 view(0)+16>1
//	add f32[2] i8[2] -> ! want the element type
//
// {...} after an operand is its known value, [...] as a shape means that the
// rank is unknown, _ is an absent operand. After ";" stand all alias rules
// that hold: kind(operand), +bytes for the offset, >result unless it is 0.
// {f32[2]|f32[3]} is one region per brace, with its result types.
func TestInferTypes(t *testing.T) {
	files, err := filepath.Glob("testdata/infer/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, error %v, want the tables of the families", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			for i, line := range strings.Split(string(data), "\n") {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
					checkInferLine(t, fmt.Sprintf("%s:%d: %s", file, i+1, line), line)
				}
			}
		})
	}
}

func checkInferLine(t testing.TB, where, line string) {
	t.Helper()
	call, want, ok := strings.Cut(line, " -> ")
	if !ok {
		t.Fatalf("%s: want ' -> '", where)
	}
	wantError, isError := strings.CutPrefix(want, "! ")
	types, aliases, _ := strings.Cut(want, " ; ")
	n := 1
	if !isError {
		n = len(fields(types))
	} else if k, rest, ok := strings.Cut(wantError, "# "); ok { // "! 3# text": with 3 results
		n, _ = strconv.Atoi(k)
		wantError = rest
	}
	s := parseCall(t, where, call, n)
	err := op.InferTypes(s)
	switch {
	case isError && err == nil:
		t.Errorf("%s\n\tgot %v, want an error", where, s.Results)
	case isError:
		if !strings.Contains(err.Error(), wantError) {
			t.Errorf("%s\n\tgot error %q", where, err)
		}
		if !errors.Is(err, shape.ErrShape) && !errors.Is(err, dtype.ErrDType) && !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("%s\n\tgot error %q, want one of the kinds of errors", where, err)
		}
		if !strings.HasPrefix(err.Error(), s.Def.Name+": ") {
			t.Errorf("%s\n\tgot error %q, want the operator in front", where, err)
		}
	case err != nil:
		t.Errorf("%s\n\tgot error %q", where, err)
	default:
		if got := strings.Trim(fmt.Sprint(s.Results), "[]"); got != strings.Trim(strings.Join(fields(types), " "), "[]") {
			t.Errorf("%s\n\tgot %v", where, s.Results)
		}
		if got := aliasesOf(s); got != strings.TrimSpace(aliases) {
			t.Errorf("%s\n\tgot aliases %q, want %q", where, got, aliases)
		}
	}
}

func aliasesOf(s *op.Sig) string {
	var out []string
	for r := range s.Results {
		for a := range s.Args {
			kind, offset := s.AliasOf(a, r)
			if kind == 0 {
				continue
			}
			text := fmt.Sprintf("%s(%d)", kind, a)
			if offset != 0 {
				text += fmt.Sprintf("+%d", offset)
			}
			if len(s.Results) > 1 {
				text += fmt.Sprintf(">%d", r)
			}
			out = append(out, text)
		}
	}
	return strings.Join(out, " ")
}

// fields splits at spaces that are not inside braces or quotes.
func fields(s string) []string {
	var out []string
	depth, quoted := 0, false
	start := -1
	for i, r := range s + " " {
		switch {
		case r == '"':
			quoted = !quoted
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		}
		if r == ' ' && depth == 0 && !quoted {
			if start >= 0 {
				out = append(out, s[start:i])
			}
			start = -1
		} else if start < 0 {
			start = i
		}
	}
	return out
}

func parseCall(t testing.TB, where, text string, results int) *op.Sig {
	t.Helper()
	words := fields(text)
	def := op.Builtin().Lookup(words[0])
	if def == nil {
		t.Fatalf("%s: no operator %q", where, words[0])
	}
	s := &op.Sig{Def: def, Results: make([]op.Type, results)}
	known := map[int][]byte{}
	var attrs []op.Attr
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "{") {
			var region []op.Type
			for _, r := range strings.Split(strings.Trim(w, "{}"), "|") {
				typ, _ := parseType(t, where, r)
				region = append(region, typ)
			}
			s.Regions = append(s.Regions, region)
			continue
		}
		if name, value, ok := strings.Cut(w, "="); ok {
			attrs = append(attrs, parseAttr(t, where, def, name, value))
			continue
		}
		typ, data := parseType(t, where, w)
		if data != nil {
			known[len(s.Args)] = data
		}
		s.Args = append(s.Args, typ)
	}
	var err error
	if s.Attrs, err = op.NewAttrs(attrs...); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	s.Known = func(arg int) ([]byte, bool) { data, ok := known[arg]; return data, ok }
	return s
}

func parseType(t testing.TB, where, text string) (op.Type, []byte) {
	t.Helper()
	if text == "_" {
		return op.Type{}, nil
	}
	text, value, hasValue := strings.Cut(strings.TrimSuffix(text, "}"), "{")
	i := strings.IndexByte(text, '[')
	if i < 0 {
		t.Fatalf("%s: got type %q, want a shape", where, text)
	}
	dt, err := dtype.Parse(text[:i])
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	typ := op.Type{DType: dt}
	if text[i:] != "[...]" {
		if typ.Shape, err = shape.Parse(text[i:]); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
	}
	if !hasValue {
		return typ, nil
	}
	data := []byte{}
	for _, v := range strings.Split(value, ",") {
		data = appendElement(t, where, data, dt, v)
	}
	return typ, data
}

func appendElement(t testing.TB, where string, data []byte, dt dtype.DType, text string) []byte {
	t.Helper()
	if dt.IsFloat() {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		switch dt {
		case dtype.F32:
			return binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(f)))
		case dtype.F16:
			return binary.LittleEndian.AppendUint16(data, uint16(dtype.Float16FromFloat32(float32(f))))
		}
		return binary.LittleEndian.AppendUint64(data, math.Float64bits(f))
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if dt.Size() == 4 {
		return binary.LittleEndian.AppendUint32(data, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(data, uint64(v))
}

func parseAttr(t testing.TB, where string, def *op.Def, name, value string) op.Attr {
	t.Helper()
	var v any = value
	var err error
	for _, a := range def.Attrs {
		if a.Name != name {
			continue
		}
		switch a.Kind {
		case op.Int:
			v, err = strconv.ParseInt(value, 10, 64)
		case op.Float:
			v, err = strconv.ParseFloat(value, 64)
		case op.String:
			v = strings.Trim(value, `"`)
		case op.DTypeKind:
			v, err = dtype.Parse(value)
		case op.Ints:
			list := []int64{}
			for _, w := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("[],", r) }) {
				n, e := strconv.ParseInt(w, 10, 64)
				list, err = append(list, n), e
			}
			v = list
		case op.Strings:
			v = strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(`[],"`, r) })
		case op.Floats:
			list := []float64{}
			for _, w := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("[],", r) }) {
				n, e := strconv.ParseFloat(w, 64)
				list, err = append(list, n), e
			}
			v = list
		}
	}
	if err != nil {
		t.Fatalf("%s: attribute %s: %v", where, name, err)
	}
	return op.Attr{Name: name, Value: v}
}
