// Package correct has no mistake.
package correct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"kit"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

func use(x *tensor.Tensor) { fmt.Println(kit.Sum(x)) }

func ifNotNil() error {
	x, err := kit.Make(1)
	if x != nil {
		return x.Release()
	}
	return err
}

func ifNilThenReturn() error {
	x, err := kit.Make(1)
	if x == nil {
		return err
	}
	use(x)
	return x.Release()
}

func ifNilAtTheEnd(often bool) {
	var x *tensor.Tensor
	if often {
		x = kit.Must(kit.Make(1))
	}
	use(nil)
	if x != nil {
		x.Release()
	}
}

func ifNoError() error {
	x, err := kit.Make(1)
	if err == nil {
		use(x)
		err = x.Release()
	}
	return err
}

func andNotNil(n int) {
	x, err := kit.Make(n)
	if err == nil && x != nil {
		x.Release()
	}
}

func byAFlag(x *tensor.Tensor, copied bool) {
	mine := false
	if copied {
		x, mine = kit.Must(kit.Make(1)), true
	}
	use(x)
	if mine {
		x.Release()
	}
}

func byTheSameTest(copied bool) {
	var x *tensor.Tensor
	if copied {
		x = kit.Must(kit.Make(1))
	}
	fmt.Println("between")
	if copied {
		use(x)
		x.Release()
	}
}

func notOrNil(n int) error {
	x, err := kit.Make(n)
	if err != nil || x == nil {
		return err
	}
	if !(n > 3) {
		return x.Release()
	}
	return x.Release()
}

func setToNil(x *tensor.Tensor, done bool) {
	if done {
		x.Release()
		x = nil
	}
	if x != nil {
		use(x)
	}
}

func chain() (x *tensor.Tensor, err error) {
	if x, err = kit.Make(1); err != nil {
		return nil, err
	}
	for range 10 {
		y, err := eager.Relu(x.Donate())
		if err != nil {
			x.Release()
			return nil, err
		}
		x = y
	}
	return x, nil
}

func chainThatCopies() error {
	x, err := kit.Make(1)
	if err != nil {
		return err
	}
	for range 10 {
		y, err := eager.Relu(x)
		if err != nil {
			return errors.Join(err, x.Release())
		}
		x.Release()
		x = y
	}
	return x.Release()
}

func swapped() {
	x, y := kit.Must(kit.Make(1)), kit.Must(kit.Make(2))
	x, y = y, x
	x.Release()
	y.Release()
}

func namedResult(n int) (x *tensor.Tensor, err error) {
	x, err = kit.Make(n)
	return
}

func operandBeforehand(ctx context.Context, s *tenure.Session, x *tensor.Tensor) error {
	in := tenure.Inputs{"x": x.Donate()}
	out, err := s.Run(ctx, in)
	if err != nil {
		return errors.Join(err, x.Release())
	}
	return out.Release()
}

func onEveryCase(mode int) {
	x := kit.Must(kit.Make(1))
	switch mode {
	case 1:
		x.Release()
	case 2:
		kit.Drop(x)
	default:
		defer x.Release()
		use(x)
	}
}

func helpers() error {
	x, err := kit.Make(1)
	if err != nil {
		return err
	}
	y, err := kit.Finish(x)
	if err != nil {
		x.Release()
		return err
	}
	kit.Keep(y)
	return nil
}

func aPair() error {
	a, b, err := kit.Pair()
	if err != nil {
		return err
	}
	defer a.Release()
	defer b.Release()
	use(a)
	use(b)
	return nil
}

func viewOfAView(x *tensor.Tensor) error {
	y, err := x.Reshape(1)
	if err != nil {
		return err
	}
	defer y.Release()
	v, err := tensor.Read[float32](y)
	if err != nil {
		return err
	}
	defer v.Release()
	fmt.Println(v.Data)
	return nil
}

func writeThenRead(x *tensor.Tensor) error {
	w, err := tensor.Write[float32](x)
	if err != nil {
		return err
	}
	w.Data[0] = 1
	w.Release()
	r, err := tensor.Read[float32](x)
	if err != nil {
		return err
	}
	sum := r.Data[0]
	r.Release()
	fmt.Println(sum)
	return nil
}

func viewReturned(x *tensor.Tensor) (*tensor.View[float32], error) {
	v, err := tensor.Write[float32](x)
	if err != nil {
		return nil, err
	}
	return v, nil
}

func copiedFromAView(x *tensor.Tensor) []float32 {
	v := kit.Must(tensor.Read[float32](x))
	defer v.Release()
	return append([]float32(nil), v.Data...)
}

// Closures.

func deferredClosure() {
	x := kit.Must(kit.Make(1))
	defer func() {
		if err := x.Release(); err != nil {
			fmt.Println(err)
		}
	}()
	use(x)
}

func deferredOnAnError() (x *tensor.Tensor, err error) {
	y := kit.Must(kit.Make(1))
	defer func() {
		if err != nil {
			y.Release()
		}
	}()
	if kit.Sum(y) > 0 {
		return nil, errors.New("got more")
	}
	return y, nil
}

func deferredBeforeItIsMade() error {
	var x *tensor.Tensor
	defer func() {
		if x != nil {
			x.Release()
		}
	}()
	x, err := kit.Make(1)
	if err != nil {
		return err
	}
	use(x)
	return nil
}

func inAGoroutine() {
	x := kit.Must(kit.Make(1))
	var group sync.WaitGroup
	group.Go(func() {
		defer x.Release()
		use(x)
	})
	group.Wait()
}

func inAGoStatement(done chan bool) {
	x := kit.Must(kit.Make(1))
	go func() {
		x.Release()
		done <- true
	}()
	<-done
}

func closureOnBothPaths(n int) {
	x := kit.Must(kit.Make(n))
	drop := func() { x.Release() }
	if n > 3 {
		drop()
		return
	}
	use(x)
	drop()
}

func closureThatIsReturned() (*tensor.Tensor, func()) {
	x := kit.Must(kit.Make(1))
	return x, func() { x.Release() }
}

func closureThatReplaces() {
	x := kit.Must(kit.Make(1))
	next := func() {
		x.Release()
		x = kit.Must(kit.Make(2))
	}
	next()
	next()
	use(x)
	x.Release()
}

func methodValueDeferred() {
	x := kit.Must(kit.Make(1))
	release := x.Release
	defer release()
	use(x)
}

// Fields, elements and channels.

type state struct{ x, y *tensor.Tensor }

func (s *state) replace() error {
	x, err := eager.Relu(s.x.Donate())
	if err != nil {
		return err
	}
	s.x = x
	use(s.x)
	return nil
}

func (s *state) close() error { return errors.Join(s.x.Release(), s.y.Release()) }

func (s *state) reset() { s.x, s.y = kit.Must(kit.Make(1)), kit.Must(kit.Make(2)) }

func (s *state) again() error {
	s.x.Release()
	s.reset()
	use(s.x)
	return s.close()
}

func (s *state) withNil() {
	if s.x != nil {
		s.x.Release()
		s.x = nil
	}
	if s.x != nil {
		use(s.x)
	}
}

func newState() (*state, error) {
	x, err := kit.Make(1)
	if err != nil {
		return nil, err
	}
	y, err := kit.Make(2)
	if err != nil {
		x.Release()
		return nil, err
	}
	return &state{x: x, y: y}, nil
}

func inASlice(n int) (list []*tensor.Tensor, err error) {
	for i := range n {
		x, err := kit.Make(i)
		if err != nil {
			for _, x := range list {
				x.Release()
			}
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

func byIndex(list []*tensor.Tensor) {
	for i := range list {
		list[i].Release()
		list[i] = nil
	}
	for i := 0; i < len(list); i++ {
		list[i] = kit.Must(kit.Make(i))
	}
	for i := range list {
		use(list[i])
		list[i].Release()
	}
}

func inAMap(names []string) {
	m := map[string]*tensor.Tensor{}
	for _, name := range names {
		m[name] = kit.Must(kit.Make(1))
	}
	for name, x := range m {
		x.Release()
		delete(m, name)
	}
}

func throughAChannel(n int) {
	c := make(chan *tensor.Tensor)
	go func() {
		for i := range n {
			c <- kit.Must(kit.Make(i))
		}
		close(c)
	}()
	for x := range c {
		use(x)
		x.Release()
	}
}

func sentOrReleased(ctx context.Context, c chan *tensor.Tensor) {
	x := kit.Must(kit.Make(1))
	select {
	case c <- x:
	case <-ctx.Done():
		x.Release()
	}
}

func labelled(list []int) {
outer:
	for {
		for _, n := range list {
			x := kit.Must(kit.Make(n))
			if n > 3 {
				x.Release()
				break outer
			}
			if n == 2 {
				x.Release()
				continue outer
			}
			x.Release()
		}
	}
}

// Outputs.

func outputsReleased(ctx context.Context, s *tenure.Session, x *tensor.Tensor) ([]float32, error) {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	return tensor.Values[float32](out["y"])
}

func outputByName(ctx context.Context, s *tenure.Session, x *tensor.Tensor) ([]float32, error) {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	y, err := out.Get("y")
	if err != nil {
		return nil, err
	}
	return tensor.Values[float32](y)
}

func outputReturned(ctx context.Context, s *tenure.Session, x *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return nil, err
	}
	return out.Get("y")
}

func outputReturnedLater(ctx context.Context, s *tenure.Session, x *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return nil, err
	}
	y, err := out.Get("y")
	if err != nil {
		out.Release()
		return nil, err
	}
	return y, nil
}

func outputsOneByOne(ctx context.Context, s *tenure.Session, x *tensor.Tensor) error {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return err
	}
	for name, y := range out {
		fmt.Println(name)
		use(y)
		y.Release()
	}
	return nil
}

func decode(ctx context.Context, s *tenure.Session) error {
	state := kit.Must(kit.Make(1))
	defer func() { state.Release() }()
	for range 3 {
		out, err := s.Run(ctx, tenure.Inputs{"state": state.Donate()})
		if err != nil {
			return err
		}
		state = out["next"]
		use(out["y"])
		out["y"].Release()
	}
	return nil
}

func oneOutput(ctx context.Context, s *tenure.Session, name string) (*tensor.Tensor, error) {
	out, err := s.Run(ctx, nil)
	if err != nil {
		return nil, err
	}
	return out[name], nil
}

func takenOut(ctx context.Context, s *tenure.Session) error {
	out, err := s.Run(ctx, nil)
	if err != nil {
		return err
	}
	y := out["y"]
	use(y)
	return y.Release()
}

func warmUp(ctx context.Context, s *tenure.Session) error {
	for range 3 {
		if out, err := s.Run(ctx, nil); err != nil {
			return err
		} else if err := out.Release(); err != nil {
			return err
		}
	}
	return nil
}

// Models, sessions, arenas, scopes, peers.

func whole(ctx context.Context) (err error) {
	m, err := tenure.Load("m.onnx")
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out, err := s.Run(ctx, nil)
	if err != nil {
		return err
	}
	return out.Release()
}

type server struct {
	m *tenure.Model
	s *tenure.Session
}

func newServer() (*server, error) {
	m, err := tenure.Load("m.onnx")
	if err != nil {
		return nil, err
	}
	s, err := m.NewSession()
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &server{m, s}, nil
}

func (s *server) Close() error { return errors.Join(s.s.Close(), s.m.Close()) }

func closeAll(list ...io.Closer) {
	for _, c := range list {
		c.Close()
	}
}

func closedByAHelper() {
	m := kit.Must(tenure.Load("m.onnx"))
	s := kit.Must(m.NewSession())
	closeAll(s, m)
}

func arenaOfAScope(x *tensor.Tensor) (*tensor.Tensor, error) {
	a, err := memory.NewArena(1<<20, 0)
	if err != nil {
		return nil, err
	}
	defer a.CloseWhenIdle()
	s := eager.NewScope()
	defer s.Close()
	y := s.Keep(s.Relu(s.Relu(x)))
	return y, s.Err()
}

func heldTwice() error {
	b, err := memory.Alloc(64, 0)
	if err != nil {
		return err
	}
	if err := b.Retain(); err != nil {
		return errors.Join(err, b.Release())
	}
	b.Release()
	return b.Release()
}

func received(ctx context.Context, p *share.Peer) error {
	for {
		r, err := p.Receive(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		use(r.Tensor)
		if err := r.Tensor.Release(); err != nil {
			return err
		}
	}
}

func receivedAgain(ctx context.Context, p *share.Peer) error {
	var r share.Received
	for range 3 {
		if err := p.ReceiveInto(ctx, &r); err != nil {
			return err
		}
		use(r.Tensor)
		r.Tensor.Release()
	}
	return nil
}

func dial(ctx context.Context) (*share.Peer, error) {
	o, err := share.NewOwner()
	if err != nil {
		return nil, err
	}
	p, err := o.Dial(ctx, "name")
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return p, nil
}

func throughItsOwner(ctx context.Context, x *tensor.Tensor) error {
	p, err := share.Dial(ctx, "name")
	if err != nil {
		return err
	}
	err = p.Offer(ctx, x)
	err = errors.Join(err, p.Owner().Close())
	return err
}

func collects(o *share.Owner) int64 {
	o.Close()
	return o.Collect()
}

func assignedInAScope(y *tensor.Tensor) error {
	s := eager.NewScope()
	defer s.Close()
	x := kit.Must(kit.Make(1))
	s.AddAssign(&x, y)
	return s.Err()
}

type named struct {
	data []float32
	name string
}

func sum(n named) float32 { return n.data[0] }

func dataInACall(x *tensor.Tensor) float32 {
	v := kit.Must(tensor.Read[float32](x))
	defer v.Release()
	return sum(named{data: v.Data, name: "v"})
}

func assignedByAFunction(list []func(**tensor.Tensor) error) {
	x := kit.Must(kit.Make(1))
	for _, f := range list {
		kit.Check(f(&x))
	}
	old := x
	fmt.Println(x != old)
	x.Release()
}

func compared(ctx context.Context, p *share.Peer) {
	var r share.Received
	var before *tensor.Tensor
	next := func() { kit.Check(p.ReceiveInto(ctx, &r)) }
	for range 3 {
		next()
		fmt.Println(r.Tensor == before)
		before = r.Tensor
		r.Tensor.Release()
	}
}

func ifAlive() {
	x := kit.Must(kit.Make(1))
	if y, err := eager.Relu(x.Reuse()); err == nil {
		y.Release()
	}
	if x.Alive() {
		x.Release()
	}
}

func owner(ctx context.Context, x *tensor.Tensor) error {
	o, err := share.NewOwner()
	if err != nil {
		return err
	}
	defer o.Close() // closes the peer too
	p, err := o.Dial(ctx, "name")
	if err != nil {
		return err
	}
	return p.Offer(ctx, x)
}

// Tests.

var errShared = errors.New("shared")

func TestRefusal(t *testing.T) {
	x := kit.Must(kit.Make(1))
	defer x.Release()
	if _, err := eager.Relu(x.Donate()); !errors.Is(err, errShared) {
		t.Errorf("got %v, want %v", err, errShared)
	}
	if _, err := eager.Relu(x); err == nil {
		t.Error("got no error")
	}
	_, err := eager.Relu(x)
	if err == nil {
		t.Fatal("got no error")
	}
}

func second[T any](v T, err error) error { return err }

func TestRefusalThroughAHelper(t *testing.T) {
	x := kit.Must(kit.Make(1))
	wantErr(t, second(eager.Relu(x.Donate())), errShared)
	use(x)
	x.Release()
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWithCleanup(t *testing.T) {
	x, err := kit.Make(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Release() })
	for name, f := range map[string]func(){"use": func() { use(x) }, "print": func() { fmt.Println(x) }} {
		t.Run(name, func(t *testing.T) { f() })
	}
}

func made(t *testing.T, n int) *tensor.Tensor {
	t.Helper()
	x, err := kit.Make(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestWithAHelper(t *testing.T) {
	x, y := made(t, 1), made(t, 2)
	z, err := eager.Add(x, y)
	if err != nil {
		t.Fatal(err)
	}
	if kit.Sum(z) != 0 {
		t.Fatalf("got %v", z)
	}
	z.Release()
}

func stateStays(ctx context.Context, s *tenure.Session, x *tensor.Tensor) error {
	state := kit.Must(kit.Make(1))
	defer state.Release()
	for range 3 {
		out, err := s.Run(ctx, tenure.Inputs{"state": state.Donate(), "x": x}, tenure.Into("next", state))
		if err != nil {
			return err
		}
		use(state)
		if err := out.Release(); err != nil {
			return err
		}
	}
	if err := s.RunInto(ctx, []tensor.Operand{state.Donate(), x}, []*tensor.Tensor{state, x}); err != nil {
		return err
	}
	use(state)
	return nil
}

func stateOfABinding(ctx context.Context, s *tenure.Session, x, state *tensor.Tensor) error {
	b, err := s.Bind()
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Into(0, state); err != nil {
		return err
	}
	for range 3 {
		out, err := b.Run(ctx, state.Donate(), x)
		if err != nil {
			return err
		}
		use(out[1])
		use(state)
	}
	y, err := b.Take(1)
	if err != nil {
		return err
	}
	return y.Release()
}

func resultsOfABinding(ctx context.Context, s *tenure.Session, x, first *tensor.Tensor) error {
	b, err := s.Bind()
	if err != nil {
		return err
	}
	defer b.Close()
	out, err := b.Run(ctx, first.Donate(), x)
	for range 3 {
		if err != nil {
			return err
		}
		out, err = b.Run(ctx, out[0].Donate(), x)
	}
	return err
}
