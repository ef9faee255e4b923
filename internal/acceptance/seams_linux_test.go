package acceptance_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// Ways of lending meet here: tensors of other processes, of other libraries, of
// files and of runs.

// ends returns the peers that two owners in this process are to each other.
func ends(t *testing.T) (owner *share.Owner, here, there *share.Peer) {
	t.Helper()
	memorytest.Check(t)
	a, b, err := share.Pair()
	if err != nil {
		t.Fatal(err)
	}
	owner, consumer := newOwner(t), newOwner(t)
	made := make(chan *share.Peer, 1)
	go func() {
		p, err := consumer.Attach(context.Background(), b)
		if err != nil {
			t.Error(err)
		}
		made <- p
	}()
	here, err = owner.Attach(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return owner, here, <-made
}

func newOwner(t *testing.T) *share.Owner {
	t.Helper()
	o, err := share.NewOwner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func lent(t *testing.T, o *share.Owner, n int, first float32) *tensor.Tensor {
	t.Helper()
	x, err := tensor.Make(o, dtype.F32, shape.MustOf(n))
	if err != nil {
		t.Fatal(err)
	}
	w, err := tensor.Write[float32](x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Data {
		w.Data[i] = first + float32(i)
	}
	w.Release()
	return x
}

func handOver(t *testing.T, here, there *share.Peer, x *tensor.Tensor, opts ...share.OfferOption) *tensor.Tensor {
	t.Helper()
	if err := here.Offer(t.Context(), x, opts...); err != nil {
		t.Fatal(err)
	}
	r, err := there.Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Tensor
}

// untilFree waits until no peer holds anything of the owner's and nothing is
// used.
func untilFree(t *testing.T, o *share.Owner, want bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		memory.Reclaim()
		if o.State().Bytes.Used == 0 == want {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("got %+v, want its memory free: %v", o.State(), want)
		}
	}
}

// needExports skips the test where DLPack exports do not exist.
func needExports(t *testing.T) {
	t.Helper()
	x := modeltest.Must(tensor.Of([]float32{1}, 1))
	defer release(t, x)
	m, err := dlpack.Export(x)
	if errors.Is(err, tensor.ErrUnsupported) {
		t.Skip(err)
	}
	release(t, modeltest.Must(dlpack.Import(modeltest.Must(m, err), nil)))
}

// TestReceivedThenExported: the lease ends with the last of tensor and export,
// in both orders.
func TestReceivedThenExported(t *testing.T) {
	needExports(t)
	owner, here, there := ends(t)
	for _, exportFirst := range []bool{true, false} {
		x := lent(t, owner, 100, 0)
		r := handOver(t, here, there, x)
		release(t, x)
		m, err := dlpack.Export(r)
		if err != nil {
			t.Fatal(err)
		}
		if m.Flags&dlpack.FlagReadOnly == 0 {
			t.Error("the export of a received tensor may be written")
		}
		if _, err := dlpack.ExportWritable(r); !errors.Is(err, tensor.ErrShared) {
			t.Errorf("writable export: got %v, want ErrShared", err)
		}
		back, err := dlpack.Import(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if modeltest.Address(back) != modeltest.Address(r) {
			t.Error("the export lies elsewhere")
		}
		first, last := r, back
		if exportFirst {
			first, last = back, r
		}
		release(t, first)
		untilFree(t, owner, false)
		if got := modeltest.Must(tensor.Float32s(last)); got[99] != 99 {
			t.Errorf("got %v, want 99", got[99])
		}
		release(t, last)
		untilFree(t, owner, true)
	}
}

// TestReceivedIntoThenExported: an export that a library holds keeps its tensor
// from being used again, and the struct that the library sees is never that of
// the tensor before.
func TestReceivedIntoThenExported(t *testing.T) {
	needExports(t)
	owner, here, there := ends(t)
	var r share.Received
	receive := func(first float32) {
		t.Helper()
		x := lent(t, owner, 100, first)
		if err := here.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		release(t, x)
		if err := there.ReceiveInto(t.Context(), &r); err != nil {
			t.Fatal(err)
		}
	}
	var before *tensor.Tensor
	for i := range 6 {
		receive(float32(i))
		if held := i%2 == 1; held == (r.Tensor == before) && i > 0 {
			t.Errorf("round %d: got the same tensor %v, want %v", i, r.Tensor == before, !held)
		}
		before = r.Tensor
		m, err := dlpack.Export(r.Tensor)
		if err != nil {
			t.Fatal(err)
		}
		back, err := dlpack.Import(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		release(t, r.Tensor)
		if i%2 == 0 { // the library has it while the next one comes
			defer func() {
				if got := modeltest.Must(tensor.Float32s(back)); got[0] != float32(i) || got[99] != float32(i+99) {
					t.Errorf("the library's tensor %d: got %v and %v, want %d and on", i, got[0], got[99], i)
				}
				release(t, back)
			}()
			continue
		}
		if got := modeltest.Must(tensor.Float32s(back)); got[0] != float32(i) || got[99] != float32(i+99) {
			t.Errorf("the library's tensor %d: got %v and %v, want %d and on", i, got[0], got[99], i)
		}
		release(t, back)
	}
}

// TestImportedThenOffered: imported bytes are copied once, and returned at
// once.
func TestImportedThenOffered(t *testing.T) {
	needExports(t)
	owner, here, there := ends(t)
	source := modeltest.Must(tensor.Of(make([]float32, 20000), 20000))
	x, err := dlpack.Import(modeltest.Must(dlpack.Export(source)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Offer(t.Context(), x, share.WithoutCopy()); !errors.Is(err, share.ErrCopy) {
		t.Errorf("without copy: got %v, want ErrCopy", err)
	}
	r := handOver(t, here, there, x)
	release(t, x)
	release(t, source)
	if owner.State().Bytes.Copied != 80000 {
		t.Errorf("%d bytes were copied, want 80000", owner.State().Bytes.Copied)
	}
	release(t, r)
	untilFree(t, owner, true)
}

// TestMappedWeightsOffered: a file's bytes go through an arena, because a peer
// could not trust a file to stay.
func TestMappedWeightsOffered(t *testing.T) {
	owner, here, there := ends(t)
	w := modeltest.Must(tensor.Of(make([]float32, 20000), 100, 200))
	path := filepath.Join(t.TempDir(), "w.safetensors")
	out := modeltest.Must(os.Create(path))
	if err := errors.Join(safetensors.Write(out, nil, safetensors.Entry{Name: "w", Tensor: w}), out.Close()); err != nil {
		t.Fatal(err)
	}
	release(t, w)
	f := modeltest.Must(safetensors.Open(path))
	mapped := modeltest.Must(f.Tensor("w"))
	if err := owner.Publish("w", mapped); err != nil {
		t.Fatal(err)
	}
	release(t, mapped)
	f.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r, err := there.Get(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		if got := modeltest.Must(tensor.Float32s(r.Tensor)); got[19999] != 0 {
			t.Errorf("got %v, want 0", got[19999])
		}
		release(t, r.Tensor)
	}
	if owner.State().Bytes.Copied != 80000 {
		t.Errorf("%d bytes were copied, want 80000 once", owner.State().Bytes.Copied)
	}
	owner.Withdraw("w")
	untilFree(t, owner, true)
	_ = here
}

// TestRunIntoASharedArena: a run's output is built in shared memory and handed
// over with no copy, and the buffer is the session's again when the consumer
// has let go.
func TestRunIntoASharedArena(t *testing.T) {
	owner, here, there := ends(t)
	m := modeltest.Load(t, "examples/digits/digits.onnx")
	s := modeltest.Session(t, m)
	x := modeltest.Must(tensor.Of(make([]float32, 64), 1, 1, 8, 8))
	defer release(t, x)
	y, err := tensor.Make(owner, dtype.F32, shape.MustOf(1, 10))
	if err != nil {
		t.Fatal(err)
	}
	at := modeltest.Address(y)
	out := modeltest.Run(t, s, tenure.Inputs{"image": x}, tenure.Into("probabilities", y))
	want := modeltest.Must(tensor.Float32s(y))
	r := handOver(t, here, there, y, share.WithoutCopy())
	if modeltest.Address(y) != at {
		t.Error("the run did not write into the arena")
	}
	if _, err := s.Run(t.Context(), tenure.Inputs{"image": x}, tenure.Into("probabilities", y)); !errors.Is(err, tensor.ErrShared) {
		t.Errorf("a run into an offered tensor: got %v, want ErrShared", err)
	}
	out.Release()
	if y.Alive() {
		release(t, y)
	}
	got := modeltest.Must(tensor.Float32s(r))
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	release(t, r)
	untilFree(t, owner, true)

	// Or the session takes the bytes of all outputs from the arena.
	s2 := modeltest.Must(m.NewSession(tenure.WithOutputsFrom(owner)))
	defer s2.Close()
	out = modeltest.Run(t, s2, tenure.Inputs{"image": x})
	r = handOver(t, here, there, out["probabilities"], share.WithoutCopy())
	out.Release()
	release(t, r)
	untilFree(t, owner, true)
}

// TestOfferedThenDonated: the bytes of an offered tensor are never written
// again, not even after every lease has ended.
func TestOfferedThenDonated(t *testing.T) {
	owner, here, there := ends(t)
	x := lent(t, owner, 1000, 0)
	r := handOver(t, here, there, x)
	for _, back := range []bool{false, true} {
		if back {
			release(t, r)
			for len(owner.Outstanding()) > 0 {
				time.Sleep(time.Millisecond)
			}
		}
		_, err := eager.Neg(x.Donate())
		if !errors.Is(err, tensor.ErrShared) || back && !strings.Contains(err.Error(), "read-only") {
			t.Errorf("donate, lease back %v: got %v, want ErrShared and the reason", back, err)
		}
		if !x.Alive() {
			t.Fatal("a refused donation took the tensor")
		}
		if _, err := tensor.Write[float32](x); !errors.Is(err, tensor.ErrShared) {
			t.Errorf("write, lease back %v: got %v, want ErrShared", back, err)
		}
	}
	y, err := eager.Neg(x.Reuse())
	if err != nil || modeltest.Address(y) == nil {
		t.Fatal(err)
	}
	if got := modeltest.Must(tensor.Float32s(y)); got[7] != -7 {
		t.Errorf("got %v, want -7", got[7])
	}
	release(t, y)
	w := lent(t, owner, 10, 0)
	view, err := tensor.Write[float32](w)
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Offer(t.Context(), w); !errors.Is(err, tensor.ErrWriting) {
		t.Errorf("offer while the tensor is written: got %v, want ErrWriting", err)
	}
	view.Release()
	release(t, w)
	untilFree(t, owner, true)
}

func release(t *testing.T, x *tensor.Tensor) {
	t.Helper()
	if err := x.Release(); err != nil {
		t.Error(err)
	}
}
