package eager_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// endings are the ways in which a function of the user's ends a call without
// returning.
var endings = map[string]func(){
	"panic":  func() { panic("by the test") },
	"goexit": runtime.Goexit,
}

// abandoned runs f, which does not return unless a kernel's panic has become an
// error, and waits until its goroutine is over.
func abandoned(t *testing.T, f func() error) {
	t.Helper()
	over := make(chan string)
	go func() {
		said := "goexit"
		defer func() {
			if r := recover(); r != nil {
				said = fmt.Sprint(r)
			}
			over <- said
		}()
		said = fmt.Sprintf("returned %v", f())
	}()
	if said := <-over; said != "goexit" && said != "by the test" && !strings.Contains(said, "the kernel panicked: by the test") {
		t.Errorf("got %s, want the panic to go on", said)
	}
}

// A call that a shape rule or a kernel ends by a panic holds nothing
// afterwards. What was given up is untouched before the first write, and dead
// after it.
func TestCallThatPanics(t *testing.T) {
	for ending, end := range endings {
		for _, in := range []string{"rule", "kernel"} {
			for _, sem := range []tensor.CopySemantics{tensor.Borrow, tensor.ReuseInput, tensor.DonateInput} {
				t.Run(fmt.Sprintf("%s in the %s, %s", ending, in, sem), func(t *testing.T) {
					memorytest.Check(t)
					def := &op.Def{Name: "acme.ends", MinArgs: 1, MaxArgs: 1, Alias: op.SameAs(0)}
					def.Infer = func(s *op.Sig) error {
						if in == "rule" {
							end()
						}
						s.Results[0] = s.Args[0]
						return nil
					}
					def.Kernel = func(c *op.Call) error {
						c.Out[0].Data[0] = 77
						end()
						return nil
					}
					x := ok(tensor.Of([]uint8{2, 4, 6}, 3))(t)
					s := eager.NewScope()
					defer s.Close()
					abandoned(t, func() error {
						return second(eager.Call(def).In(s).On(x).Semantics(sem).Run())
					})
					if sem != tensor.Borrow && in == "kernel" {
						wantErr(t, "given up and written", x.Release(), tensor.ErrDonated)
						return
					}
					want(t, x, 2, 4, 6)
					wantErr(t, "writable", x.WhyNotWritable(), nil)
					release(t, x)
				})
			}
		}
	}
}

// The operand that a row-major copy was made of is given back with the copy.
func TestCallThatPanicsOnACopy(t *testing.T) {
	memorytest.Check(t)
	def := &op.Def{Name: "acme.ends", MinArgs: 1, MaxArgs: 1, Alias: op.Fresh()}
	def.Infer = func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil }
	def.Kernel = func(*op.Call) error { panic("by the test") }
	x := of(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	y := ok(x.Transpose())(t)
	abandoned(t, func() error { return second(eager.Call(def).On(y).Run()) })
	release(t, x, y)
}

// A composed operation whose body panics leaves nothing of its scope.
func TestBodyThatPanics(t *testing.T) {
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			memorytest.Check(t)
			f, err := eager.NewFunc("ends", 1, nil, func(s *eager.Scope, x []*tensor.Tensor) ([]*tensor.Tensor, error) {
				s.Add(x[0], x[0])
				end()
				return nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			x := vector(t, 1, 2)
			abandoned(t, func() error { return second(f.Call(x)) })
			want(t, x, 1, 2)
			release(t, x)
		})
	}
}
