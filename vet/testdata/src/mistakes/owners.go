package mistakes

import (
	"context"
	"fmt"

	"kit"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

func outputsLeaked(ctx context.Context, s *tenure.Session, x *tensor.Tensor) (float32, error) {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return 0, err
	}
	values, err := tensor.Values[float32](out["y"])
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

func outputsLeakedOnOnePath(ctx context.Context, s *tenure.Session, x *tensor.Tensor) error {
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return err
	}
	if _, err := tensor.Values[float32](out["y"]); err != nil {
		return err
	}
	return out.Release()
}

func outputsUsedAfterRelease(ctx context.Context, s *tenure.Session, x *tensor.Tensor) {
	out := kit.Must(s.Run(ctx, tenure.Inputs{"x": x}))
	out.Release()
	use(out["y"])
}

func outputUsedAfterRelease(ctx context.Context, s *tenure.Session, x *tensor.Tensor) {
	out := kit.Must(s.Run(ctx, tenure.Inputs{"x": x}))
	y := out["y"]
	out.Release()
	use(y)
}

func outputReleasedTwice(ctx context.Context, s *tenure.Session, x *tensor.Tensor) {
	out := kit.Must(s.Run(ctx, tenure.Inputs{"x": x}))
	out["y"].Release()
	out["y"].Release()
}

func outputsDiscarded(ctx context.Context, s *tenure.Session, x *tensor.Tensor) {
	_, _ = s.Run(ctx, tenure.Inputs{"x": x})
}

func outputsLeakedInALoop(ctx context.Context, s *tenure.Session, x *tensor.Tensor) {
	for range 3 {
		out := kit.Must(s.Run(ctx, tenure.Inputs{"x": x}))
		fmt.Println(len(out))
	}
}

func inputLeaked(ctx context.Context, s *tenure.Session) error {
	x := kit.Must(kit.Make(1))
	out, err := s.Run(ctx, tenure.Inputs{"x": x})
	if err != nil {
		return err
	}
	return out.Release()
}

func inputUsedAfterDonation(ctx context.Context, s *tenure.Session, x *tensor.Tensor) error {
	out, err := s.Run(ctx, tenure.Inputs{"x": x.Donate()})
	if err != nil {
		return err
	}
	use(x)
	return out.Release()
}

func modelLeaked() error {
	m, err := tenure.Load("m.onnx")
	if err != nil {
		return err
	}
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	return m.Close()
}

func sessionLeaked(m *tenure.Model) error {
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	out, err := s.Run(context.Background(), nil)
	if err != nil {
		return err
	}
	return out.Release()
}

func sessionUsedAfterClose(ctx context.Context, s *tenure.Session) error {
	s.Close()
	out, err := s.Run(ctx, nil)
	if err != nil {
		return err
	}
	return out.Release()
}

func arenaLeaked() error {
	a, err := memory.NewArena(1<<20, 0)
	if err != nil {
		return err
	}
	b, err := a.Alloc(64)
	if err != nil {
		a.Close()
		return err
	}
	return b.Release()
}

func bufferReleasedTwice() {
	b := kit.Must(memory.Alloc(64, 0))
	b.Release()
	b.Release()
}

func bufferLeaked() {
	b := kit.Must(memory.Alloc(64, 0))
	clear(b.Bytes())
}

func scopeLeaked(x *tensor.Tensor) error {
	s := eager.NewScope()
	s.Relu(x)
	return s.Err()
}

func resultOfAClosedScope(x *tensor.Tensor) {
	s := eager.NewScope()
	y := s.Relu(x)
	s.Close()
	use(y)
}

func resultThatIsNotKept(x *tensor.Tensor) (*tensor.Tensor, error) {
	s := eager.NewScope()
	defer s.Close()
	y := s.Relu(x)
	return y, s.Err()
}

func donatedInAScope(x *tensor.Tensor) error {
	s := eager.NewScope()
	defer s.Close()
	h := s.Relu(x)
	s.Add(h.Donate(), x)
	s.Relu(h)
	return s.Err()
}

func receivedLeaked(ctx context.Context, p *share.Peer) error {
	r, err := p.Receive(ctx)
	if err != nil {
		return err
	}
	fmt.Println(r.Label, kit.Sum(r.Tensor))
	return nil
}

func receivedUsedAfterRelease(ctx context.Context, p *share.Peer) {
	r := kit.Must(p.Receive(ctx))
	r.Tensor.Release()
	use(r.Tensor)
}

func ownerLeaked() error {
	o, err := share.NewOwner()
	if err != nil {
		return err
	}
	x, err := o.Make(1)
	if err != nil {
		return err
	}
	return x.Release()
}

func peerUsedAfterClose(ctx context.Context, x *tensor.Tensor) error {
	p, err := share.Dial(ctx, "name")
	if err != nil {
		return err
	}
	p.Close()
	return p.Offer(ctx, x)
}

// What this package leaves alone, and why: its documentation says so.

func leakInASliceOfOurs() {
	list := []*tensor.Tensor{kit.Must(kit.Make(1)), kit.Must(kit.Make(2))}
	use(list[0])
}

func aliasOfAContainer(a *state) {
	b := a
	a.x.Release()
	b.x.Release()
}

func bindingLeaked(ctx context.Context, s *tenure.Session, x *tensor.Tensor) error {
	b, err := s.Bind()
	if err != nil {
		return err
	}
	_, err = b.Run(ctx, x)
	return err
}

func takenLeaked(ctx context.Context, b *tenure.Binding, x *tensor.Tensor) error {
	if _, err := b.Run(ctx, x); err != nil {
		return err
	}
	y, err := b.Take(0)
	if err != nil {
		return err
	}
	use(y)
	return nil
}

func stateGoesElsewhere(ctx context.Context, s *tenure.Session, state, y *tensor.Tensor) error {
	out, err := s.Run(ctx, tenure.Inputs{"state": state.Donate()}, tenure.Into("y", y))
	if err != nil {
		return err
	}
	use(state)
	return out.Release()
}
