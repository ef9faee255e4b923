package acceptance_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

var updateAliasing = flag.Bool("update", false, "rewrite the want sections of the golden files")

// TestAliasing runs small programs, each of which is the case of an aliasing
// fault that another project had. What a session returns, with donated inputs
// and without, is what the interpreter returns, which shares no bytes, and what
// the file says. The section sizes has a symbol and sizes of it, ints an input
// of integers and values of it, one per run.
func TestAliasing(t *testing.T) {
	paths, err := filepath.Glob("testdata/aliasing/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files")
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			memorytest.Check(t)
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for _, f := range a.Files {
				files[f.Name] = string(f.Data)
			}
			got := aliasingCase(t, files)
			if *updateAliasing {
				a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != files["want"] {
				t.Errorf("got:\n%s\nwant:\n%s", got, files["want"])
			}
		})
	}
}

func aliasingCase(t *testing.T, files map[string]string) string {
	p := modeltest.Must(ir.Parse(files["in"], op.Builtin()))
	m := modeltest.Must(tenure.LoadProgram(p, nil))
	defer m.Close()
	s := modeltest.Session(t, m)
	pure := modeltest.Must(ir.Functionalize(p, nil))
	symbol, sizes := nameAndNumbers(t, files["sizes"])
	name, ints := nameAndNumbers(t, files["ints"])
	var text strings.Builder
	for run := range max(1, len(sizes), len(ints)) {
		var args []op.Arg
		for i, v := range p.Body.Params {
			typ := v.Type
			if symbol != "" {
				dims := typ.Shape.Dims()
				for axis, d := range dims {
					if of, ok := d.Symbol(); ok && of == symbol {
						dims[axis] = shape.N(int(sizes[run]))
					}
				}
				typ.Shape = modeltest.Must(shape.FromDims(dims...))
			}
			x := op.Arg{Type: typ, Layout: shape.RowMajor(typ.Shape)}
			for k := range typ.Shape.NumElements() {
				if v.Name == name {
					x.Data = append(x.Data, byte(ints[run]))
				} else {
					x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(float32((5*k+3*i)%7-2)))
				}
			}
			args = append(args, x)
		}
		want, err := (&ir.Interpreter{Eval: compute.Eval}).Run(pure, args...)
		if err != nil {
			t.Fatal(err)
		}
		for _, donate := range []bool{false, true} {
			in := tenure.Inputs{}
			shapes := tenure.Shapes{}
			var donated []string
			for i, v := range p.Body.Params {
				x := modeltest.Must(tensor.New(args[i].DType, args[i].Shape))
				b := modeltest.Must(x.Lock())
				copy(b.Data, args[i].Data)
				b.Release()
				shapes[v.Name] = args[i].Shape.Sizes()
				if in[v.Name] = x; v.Donated && donate {
					in[v.Name] = x.Donate()
					donated = append(donated, v.Name)
				} else {
					defer x.Release()
				}
			}
			d := modeltest.Must(m.Plan(t.Context(), shapes, tenure.WithDonated(donated...)))
			if err := m.Check(d); err != nil {
				t.Error(err)
			}
			if donate && len(donated) == 0 {
				continue
			}
			out, err := s.Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			for i, info := range m.Outputs() {
				b := modeltest.Must(out[info.Name].Use())
				got := op.Arg{Type: want[i].Type, Data: slices.Clone(b.Data)}
				b.Release()
				if elementsText(got) != elementsText(want[i]) {
					t.Errorf("run %d, donated %v: %s: got %s, want %s", run, donate, info.Name, elementsText(got), elementsText(want[i]))
				}
			}
			if err := out.Release(); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(&text, "donated %v: %s\n", donated, inPlaceText(d))
		}
		for i, info := range m.Outputs() {
			fmt.Fprintf(&text, "%s: %s\n", info.Name, elementsText(want[i]))
		}
	}
	return text.String()
}

// nameAndNumbers reads a name and numbers.
func nameAndNumbers(t *testing.T, text string) (name string, list []int64) {
	for i, word := range strings.Fields(text) {
		if i == 0 {
			name = word
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return name, list
}

// inPlaceText lists what a plan puts in place.
func inPlaceText(d *plan.Plan) string {
	var list []string
	for _, x := range d.InPlace {
		list = append(list, fmt.Sprintf("%s %s of %s", x.Value, x.Kind, x.Of))
	}
	slices.Sort(list)
	return fmt.Sprintf("in place [%s], %d copies", strings.Join(list, ", "), len(d.Copies))
}

func elementsText(x op.Arg) string {
	var list []string
	size := x.DType.Size()
	for data := x.Data; len(data) > 0; data = data[size:] {
		switch x.DType {
		case dtype.F32:
			list = append(list, fmt.Sprintf("%.4g", math.Float32frombits(binary.LittleEndian.Uint32(data))+0))
		case dtype.I32:
			list = append(list, fmt.Sprint(int32(binary.LittleEndian.Uint32(data))))
		case dtype.I64:
			list = append(list, fmt.Sprint(int64(binary.LittleEndian.Uint64(data))))
		default:
			list = append(list, fmt.Sprint(data[0]))
		}
	}
	return x.Type.String() + " " + strings.Join(list, " ")
}
