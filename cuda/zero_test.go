package cuda_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/fake"
)

// Every method of every type bears nil and zero receivers and arguments.
func TestZeroValues(t *testing.T) {
	r := newRig(t, fake.Config{})
	s := r.stream(t, 0)
	for _, v := range []any{
		(*cuda.Driver)(nil), new(cuda.Driver), (*cuda.Device)(nil), new(cuda.Device), (*cuda.Stream)(nil), new(cuda.Stream),
		(*cuda.Arena)(nil), new(cuda.Arena), (*cuda.Module)(nil), new(cuda.Module), cuda.Info{}, cuda.Arg{},
		r.c, r.devices[0].Arena(), s,
	} {
		x := reflect.ValueOf(v)
		for i := range x.NumMethod() {
			m, name := x.Method(i), fmt.Sprintf("%T.%s", v, x.Type().Method(i).Name)
			if v == any(s) && x.Type().Method(i).Name == "Close" {
				continue // the test's cleanup does
			}
			in := make([]reflect.Value, 0, m.Type().NumIn())
			for k := range m.Type().NumIn() {
				if m.Type().IsVariadic() && k == m.Type().NumIn()-1 {
					break
				}
				in = append(in, reflect.Zero(m.Type().In(k)))
			}
			func() {
				defer func() {
					if fault := recover(); fault != nil {
						t.Errorf("%s: panics: %v", name, fault)
					}
				}()
				for _, out := range m.Call(in) {
					if b, ok := out.Interface().(interface{ Release() error }); ok && !out.IsNil() {
						_ = b.Release()
					}
				}
			}()
		}
	}
	_ = cuda.In(nil)
	_ = cuda.Out(nil)
	_ = cuda.Value(nil)
}
