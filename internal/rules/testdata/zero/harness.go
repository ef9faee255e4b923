// The program of TestZeroValues: it calls every exported function, and every method of every exported type, with values that a
// caller may pass by mistake, and reports what panics or hangs. The test writes beside it the list of what there is to call.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

const (
	draws = 24 // of arguments, for each call
	limit = 10 * time.Second
)

// wrong has values of a type that a caller may pass by mistake, beside its zero value.
var wrong = map[reflect.Type][]any{}

func offer[T any](values ...T) {
	t := reflect.TypeFor[T]()
	for _, v := range values {
		wrong[t] = append(wrong[t], v)
	}
}

func ok[T any](v T, err error) T {
	if err != nil {
		fmt.Println("SETUP", err)
		os.Exit(1)
	}
	return v
}

// live are values in use: their methods are called with wrong arguments.
func live() []any {
	x := ok(tensor.Of([]float32{1, 2, 3, 4}, 2, 2))
	gone := ok(tensor.Of([]float32{1}, 1))
	_ = gone.Release()
	lost := ok(memory.Alloc(8, memory.IO)) // released without a hold
	over := ok(tensor.FromBuffer(lost, 0, dtype.F32, shape.RowMajor(shape.MustOf(2))))
	_, _ = lost.Release(), lost.Release()
	open := ok(shape.FromDims(shape.Sym("n"), shape.N(2)))
	m := ok(tenure.Load(os.Args[1]))
	s := ok(m.NewSession())
	closed := ok(m.NewSession())
	_ = closed.Close()
	var file, archive bytes.Buffer
	_ = ok(0, safetensors.Write(&file, nil, safetensors.Entry{Name: "x", Tensor: x}))
	_ = ok(0, npy.WriteArchive(&archive, npy.Entry{Name: "x", Tensor: x}))
	shut := ok(safetensors.Parse(file.Bytes()))
	_ = shut.Close()

	offer[context.Context](context.Background())
	offer[tensor.Operand]((*tensor.Tensor)(nil), &tensor.Tensor{}, tensor.Donated{}, tensor.Reused{}, gone, over, x)
	offer(&tensor.Tensor{}, gone, over, x)
	offer(shape.MustOf(), shape.MustOf(2, 2), open)
	offer(&shape.Layout{}, shape.RowMajor(shape.MustOf(2, 2)))
	offer(&memory.Buffer{}, lost)
	offer(-1, 1, 2, math.MaxInt, math.MinInt)
	offer[int64](-1, 1)
	offer(dtype.F32, dtype.I4, dtype.DType(255))
	offer("x", "\x00")
	offer[io.Writer](io.Discard)
	offer[io.Reader](bytes.NewReader(nil))
	offer[io.ReaderAt](bytes.NewReader(nil))
	offer(npy.Entry{Name: "x"}, npy.Entry{Name: "x", Tensor: x})
	offer(safetensors.Entry{Name: "x"}, safetensors.Entry{Name: "x", Tensor: over})
	offer([]int{-1}, []int{math.MaxInt, math.MaxInt}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	offer([]byte{1, 2, 3})
	name := m.Inputs()[0].Name
	offer(tenure.Inputs{name: nil}, tenure.Inputs{name: x}, tenure.Inputs{name: &tensor.Tensor{}}, tenure.Inputs{name: over})
	offer(tenure.Shapes{name: nil}, tenure.Shapes{name: {8}})
	offer(tenure.Into(m.Outputs()[0].Name, nil), tenure.Into(m.Outputs()[0].Name, &tensor.Tensor{}), tenure.Into("x", gone), tenure.Watch(nil))
	offer(tenure.WithOutputsFrom(nil), tenure.WithThreads(-1))
	return []any{x, gone, over, open, shape.RowMajor(open), m, s, closed, tenure.Outputs{"y": x, "n": nil}, lost,
		ok(memory.NewArena(1<<20, memory.IO)), eager.NewScope(nil), eager.Op("relu"), eager.Op("none"), tensor.NewOperation("o"),
		ok(safetensors.Parse(file.Bytes())), shut, ok(npy.NewArchive(bytes.NewReader(archive.Bytes()), int64(archive.Len())))}
}

func main() {
	values := live()
	for _, c := range calls() {
		probe(c.name, reflect.ValueOf(c.f))
	}
	for _, t := range types() {
		methods(t.name+" nil", reflect.Zero(reflect.PointerTo(t.t)))
		methods(t.name+" zero", reflect.New(t.t))
	}
	for _, v := range values {
		methods(fmt.Sprintf("%T live", v), reflect.ValueOf(v))
	}
	fmt.Println("END")
}

type call struct {
	name string
	f    any
}

type named struct {
	name string
	t    reflect.Type
}

// enders are called last: they end the objects that the others need.
var enders = []string{"Close", "Release", "TakeBuffer", "Rollback", "Clear"}

func methods(name string, v reflect.Value) {
	var last []func()
	for i := range v.NumMethod() {
		m := v.Type().Method(i)
		f := func() {
			// The method expression: a nil receiver reaches the method, which the method value of a type with value receivers
			// would not.
			if v.Kind() == reflect.Pointer && v.IsNil() {
				if elem := v.Type().Elem(); elem.Kind() != reflect.Struct || hasMethod(elem, m.Name) {
					return // called on a value: there is none, and Go itself panics
				}
			}
			probe(name+"."+m.Name, m.Func, v)
		}
		if slices.Contains(enders, m.Name) {
			last = append(last, f)
			continue
		}
		f()
	}
	for _, f := range last {
		f()
	}
}

func hasMethod(t reflect.Type, name string) bool {
	_, found := t.MethodByName(name)
	return found
}

// probe calls f with drawn arguments after the given ones, the first time with zero values.
func probe(name string, f reflect.Value, given ...reflect.Value) {
	if skipped(name) {
		return
	}
	t := f.Type()
	draw := rand.New(rand.NewPCG(1, uint64(len(name))))
	seen := map[string]bool{}
	for i := range draws {
		args := slices.Clone(given)
		for p := len(given); p < t.NumIn(); p++ {
			in := t.In(p)
			if t.IsVariadic() && p == t.NumIn()-1 {
				for range min(i, draw.IntN(3)) {
					args = append(args, pick(in.Elem(), i, draw))
				}
				break
			}
			args = append(args, pick(in, i, draw))
		}
		if fault := attempt(f, args); fault != "" && !seen[fault] {
			seen[fault] = true
			fmt.Printf("FAULT %s(%s): %s\n", name, show(args[len(given):]), fault)
		}
		memory.SetLimit(0)
		if t.NumIn() == len(given) {
			break
		}
	}
}

func pick(t reflect.Type, i int, draw *rand.Rand) reflect.Value {
	known := wrong[t]
	if k := draw.IntN(len(known) + 1); i > 0 && k > 0 {
		v := reflect.New(t).Elem()
		v.Set(reflect.ValueOf(known[k-1]))
		return v
	}
	if t.Kind() == reflect.Pointer && len(known) == 0 && i%2 == 1 && !strings.Contains(t.String(), "DL") && t != reflect.TypeFor[*os.File]() {
		return reflect.New(t.Elem())
	}
	return reflect.Zero(t)
}

func attempt(f reflect.Value, args []reflect.Value) string {
	done := make(chan string, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Sprintf("panic: %v", p)
			}
		}()
		f.Call(args)
		done <- ""
	}()
	select {
	case fault := <-done:
		return fault
	case <-time.After(limit):
		return "does not return"
	}
}

func show(args []reflect.Value) string {
	var texts []string
	for _, a := range args {
		text := a.Type().String()
		if a.CanInterface() {
			switch a.Kind() {
			case reflect.Pointer, reflect.Interface:
				if a.IsNil() {
					text += " nil"
				}
			case reflect.Int, reflect.String, reflect.Slice, reflect.Uint8:
				text += fmt.Sprintf(" %v", a.Interface())
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}
