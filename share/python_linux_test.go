package share

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// pythonPart starts a part of testdata/peer.py.
func pythonPart(t *testing.T, part string, change func(*exec.Cmd)) *proc {
	t.Helper()
	cmd := exec.Command(pythontest.Interpreter(t, "numpy"), filepath.Join("testdata", "peer.py"), part)
	cmd.Env = pythontest.Env("..")
	if change != nil {
		change(cmd)
	}
	return startProc(t, "python "+part, cmd)
}

// pythonChild starts a part and connects to it.
func pythonChild(t *testing.T, part string) (*proc, *Peer) {
	t.Helper()
	python := pythontest.Interpreter(t, "numpy")
	checkDescriptors(t)
	o := ok(NewOwner(AllowDrop()))(t)
	cmd := exec.Command(python, filepath.Join("testdata", "peer.py"), part)
	cmd.Env = pythontest.Env("..")
	f := ok(Command(cmd))(t)
	p := startProc(t, "python "+part, cmd)
	cmd.ExtraFiles[0].Close()
	peer := ok(o.Attach(t.Context(), f))(t)
	t.Cleanup(func() { o.Close() })
	return p, peer
}

func (p *proc) hear(t testing.TB) string {
	t.Helper()
	select {
	case line, alive := <-p.lines:
		if alive {
			return line
		}
		<-p.ended
		t.Fatalf("%s ended with %v:\n%s", p.name, p.err, strings.Join(p.said, "\n"))
	case <-time.After(30 * time.Second):
		t.Fatalf("%s says nothing", p.name)
	}
	return ""
}

func (p *proc) order(t testing.TB, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		t.Fatal(err)
	}
}

func (p *proc) wants(t testing.TB, want string) {
	t.Helper()
	if got := p.hear(t); got != want {
		t.Errorf("%s: got %q, want %q", p.name, got, want)
	}
}

// kill kills it by SIGKILL.
func (p *proc) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// number makes a tensor of 0, 1, 0, 1, ... of a type in the owner's arenas.
func number(t testing.TB, o *Owner, d dtype.DType, dims ...int) *tensor.Tensor {
	t.Helper()
	x := ok(tensor.Make(o, d, ok(shape.Of(dims...))(t)))(t)
	one := map[dtype.DType]string{dtype.F16: "003c", dtype.F32: "0000803f", dtype.F64: "000000000000f03f", dtype.C64: "0000803f00000000",
		dtype.C128: "000000000000f03f0000000000000000"}[d]
	size := d.Bits() / 8
	if one == "" {
		one = "01" + strings.Repeat("00", size-1)
	}
	pattern := ok(hex.DecodeString(one))(t)
	b, first := x.UnsafeBytes()
	for i := range x.NumElements() {
		clear(b[first+i*size : first+(i+1)*size])
		if i%2 == 1 {
			copy(b[first+i*size:], pattern)
		}
	}
	return x
}

func contents(t testing.TB, x *tensor.Tensor) string {
	t.Helper()
	c, _, err := x.Contiguous()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	b, first := c.UnsafeBytes()
	return string(b[first : first+c.NumBytes()])
}

// TestPythonEchoes: every type from Go to Python and back, by reference, by
// copy and inline, and through views.
func TestPythonEchoes(t *testing.T) {
	p, peer := pythonChild(t, "echo")
	for _, d := range []dtype.DType{dtype.F16, dtype.F32, dtype.F64, dtype.I8, dtype.I16, dtype.I32, dtype.I64, dtype.U8, dtype.U16, dtype.U32, dtype.U64,
		dtype.Bool, dtype.C64, dtype.C128} {
		for _, rows := range []int{1, 5000} {
			x := number(t, peer.o, d, rows, 4)
			view := ok(x.Slice(tensor.All, tensor.Range{Start: 1, Stop: 4, Step: 2}))(t)
			for _, y := range []*tensor.Tensor{x, view} {
				if err := peer.Offer(t.Context(), y, Label("π "+d.String())); err != nil {
					t.Fatal(err)
				}
				sum := rows * 2
				p.wants(t, fmt.Sprintf("π %s %s [%d, %d] False %d.0", d, d, rows, y.Shape().Size(1), sum))
				back, transposed, passed := receive(t, peer), receive(t, peer), receive(t, peer)
				again := ok(transposed.Tensor.Transpose())(t)
				for _, r := range []*tensor.Tensor{back.Tensor, again, passed.Tensor} {
					if r.Shape() != y.Shape() || r.DType() != d || contents(t, r) != contents(t, y) {
						t.Errorf("%s: got %s back, want %s with the same elements", d, r, y)
					}
				}
				if labels := back.Label + transposed.Label + passed.Label; labels != "as it isturnedpassed on" {
					t.Errorf("got labels %q", labels)
				}
				mustRelease(t, back.Tensor, transposed.Tensor, passed.Tensor, again)
			}
			mustRelease(t, x, view)
		}
	}
	untilTrue(t, "python has let go", func() bool { return peer.o.State().Bytes.Used == 0 })
	peer.Close()
	p.wants(t, "ended")
}

// TestPythonTypesOfItsOwn: types that numpy lacks arrive with their bits.
func TestPythonTypesOfItsOwn(t *testing.T) {
	p, peer := pythonChild(t, "raw")
	for _, d := range []dtype.DType{dtype.BF16, dtype.F8E4M3FN, dtype.F8E5M2, dtype.F8E8M0, dtype.I4, dtype.U4, dtype.I2, dtype.F4E2M1, dtype.F6E2M3FN, dtype.BC32} {
		x := ok(tensor.Make(peer.o, d, shape.MustOf(3, 5)))(t)
		b, first := x.UnsafeBytes()
		b = b[first : first+x.NumBytes()]
		for i := range b {
			b[i] = byte(37 * (i + 1))
		}
		if err := peer.Offer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		p.wants(t, fmt.Sprintf("%s [3, 5] %x", d, b))
		mustRelease(t, x)
	}
	peer.Close()
}

// TestPythonOwns: every type built in Python's memory; Go reads it in place,
// and its releases empty the owner.
func TestPythonOwns(t *testing.T) {
	p, peer := pythonChild(t, "offer")
	here := ok(NewOwner())(t)
	defer here.Close()
	for range 14 {
		for _, rows := range []int{5, 3000} {
			r, transposed := receive(t, peer), receive(t, peer)
			want := number(t, here, r.Tensor.DType(), rows, 2)
			for _, x := range []*tensor.Tensor{r.Tensor, transposed.Tensor} {
				if x.Shape() != want.Shape() || contents(t, x) != contents(t, want) {
					t.Errorf("%s %s: got other elements than %s", r.Label, x, want)
				}
			}
			mustRelease(t, want, r.Tensor, transposed.Tensor)
		}
	}
	p.wants(t, "offered")
	p.order(t, "look")
	p.wants(t, "0 0")
	peer.Close()
}

// TestPythonEnds: connections closed by either end first, with tensors out in
// either direction, live on for them.
func TestPythonEnds(t *testing.T) {
	for _, first := range []string{"go", "python"} {
		for owner, part := range map[string]string{"go": "hold", "python": "lend"} {
			t.Run(first+" closes first, "+owner+" owns", func(t *testing.T) {
				p, peer := pythonChild(t, part)
				p.order(t, "2")
				ends(t, first, p, peer)
			})
		}
	}
}

// ends plays one ending: two tensors are out, one end closes, the holder reads
// them and lets go, and both ends are through.
func ends(t *testing.T, first string, p *proc, peer *Peer) {
	t.Helper()
	closeFirst := func() {
		if first == "go" {
			peer.Close()
			return
		}
		p.order(t, "close")
		p.wants(t, "done")
	}
	if p.name == "python hold" {
		for range 2 {
			x := build(t, peer.o, 100, 50)
			if err := peer.Offer(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, x)
		}
		p.wants(t, "held")
		closeFirst()
		p.order(t, "sum")
		p.wants(t, "12497500 12497500")
		p.wants(t, "done")
		if n := len(peer.o.Outstanding()); n != 2 {
			t.Errorf("got %d leases, want 2", n)
		}
		for range 2 {
			p.order(t, "release")
			p.wants(t, "done")
		}
	} else {
		a, b := receive(t, peer), receive(t, peer)
		p.wants(t, "offered")
		closeFirst()
		if contents(t, a.Tensor)[:4]+contents(t, b.Tensor)[:4] != "\x01\x00\x00\x00\x02\x00\x00\x00" {
			t.Error("what is held has changed")
		}
		p.order(t, "out")
		p.wants(t, "2")
		p.wants(t, "done")
		mustRelease(t, a.Tensor, b.Tensor)
	}
	untilTrue(t, "the connection is over", func() bool {
		peer.o.mu.Lock()
		defer peer.o.mu.Unlock()
		return len(peer.o.peers) == 0
	})
	p.order(t, "")
	<-p.ended
	if p.err != nil {
		t.Errorf("%s: %v: %s", p.name, p.err, strings.Join(p.said, "\n"))
	}
}

// TestPythonDies: a killed consumer's leases end, a killed owner's bytes stay.
func TestPythonDies(t *testing.T) {
	t.Run("consumer", func(t *testing.T) {
		p, peer := pythonChild(t, "hold")
		p.order(t, "1")
		x := build(t, peer.o, 5000)
		for range 3 {
			if err := peer.Offer(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
		mustRelease(t, x)
		p.wants(t, "held")
		p.kill()
		untilTrue(t, "everything is free", func() bool { return peer.o.State().Bytes.Used == 0 && len(peer.o.Outstanding()) == 0 })
		if _, err := peer.Receive(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("receive: got %v, want ErrClosed", err)
		}
	})
	t.Run("owner", func(t *testing.T) {
		p, peer := pythonChild(t, "lend")
		p.order(t, "5")
		p.wants(t, "offered")
		held := []*Received{receive(t, peer)}
		p.kill()
		for range 4 { // they were on their way
			held = append(held, receive(t, peer))
		}
		if _, err := peer.Receive(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("receive: got %v, want ErrClosed", err)
		}
		for i, r := range held {
			if got := contents(t, r.Tensor); r.Label != fmt.Sprint(i+1) || got != strings.Repeat(string([]byte{byte(i + 1), 0, 0, 0}), 10000) {
				t.Errorf("%s has changed", r.Label)
			}
			mustRelease(t, r.Tensor)
		}
	})
}

// lenderRole serves the name "outlived": it lends a consumer five stamped
// tensors, of which it lets go, has one more that is only built, and then waits
// to be killed.
func lenderRole() error {
	ctx := context.Background()
	o, err := NewOwner()
	if err != nil {
		return err
	}
	l, err := o.Listen("outlived")
	if err != nil {
		return err
	}
	say("ready")
	p, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	for stamp := range uint32(6) {
		x, err := tensor.Make(o, dtype.U32, shape.MustOf(100_000))
		if err != nil {
			return err
		}
		w, err := tensor.Write[uint32](x)
		if err != nil {
			return err
		}
		for i := range w.Data {
			w.Data[i] = stamp
		}
		w.Release()
		if stamp < 5 {
			err = errors.Join(p.Offer(ctx, x, Label(strconv.Itoa(int(stamp)))), x.Release())
		}
		if err != nil {
			return err
		}
	}
	say("offered")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestPythonOutlivesGo: the owner is killed while a Python process holds two
// tensors and three more are on their way.
func TestPythonOutlivesGo(t *testing.T) {
	python := pythontest.Interpreter(t, "numpy")
	dir := filepath.Join(t.TempDir(), "s")
	owner := startRole(t, "owner", dir, "lender")
	owner.wants(t, "ready")
	cmd := exec.Command(python, filepath.Join("testdata", "peer.py"), "outlive")
	cmd.Env = append(pythontest.Env(".."), "TENURE_SHARE_DIR="+dir)
	p := startProc(t, "python outlive", cmd)
	owner.wants(t, "offered")
	p.wants(t, "holds 0 1")
	owner.kill()
	p.order(t, "")
	for _, line := range []string{
		"receive GoneError: receive: the other end is gone",
		"offer GoneError: offer: the other end is gone",
		"offer in place GoneError: offer: the other end is gone",
		"ticket GoneError: ticket: the other end is gone",
		"claim GoneError: claim: the other end is gone",
		"get GoneError: get 'weights': the other end is gone",
		"state GoneError: state: the other end is gone",
		"attach GoneError: attach: no process listens under 'outlived' in " + dir + ": Connection refused",
		"holds 0 1 2 3 4 of it in 1 map, closed False",
		"holds 4 of it in 1 map, closed False", // one view is left
		"holds nothing of it in 0 maps, 0 sockets, closed True",
	} {
		p.wants(t, line)
	}
	<-p.ended
	if p.err != nil {
		t.Errorf("%s: %v: %s", p.name, p.err, strings.Join(p.said, "\n"))
	}
	checkNothingLeft(t, dir)
}

// TestPythonTickets: a Python consumer's ticket is claimed by a Go process's
// peer, and the other way round.
func TestPythonTickets(t *testing.T) {
	p, peer := pythonChild(t, "hold")
	p.order(t, "1")
	x := build(t, peer.o, 100, 50)
	if err := peer.Offer(t.Context(), x, Label("passed on")); err != nil {
		t.Fatal(err)
	}
	p.wants(t, "held")
	other := ok(NewOwner())(t)
	_, third := connected(t, peer.o, other)

	p.order(t, "ticket")
	ticket := ok(ParseTicket(p.hear(t)))(t)
	p.wants(t, "done")
	mustRelease(t, x)
	r := ok(third.Claim(t.Context(), ticket))(t)
	if r.Label != "passed on" || sum(t, r.Tensor) != 12497500 {
		t.Errorf("got %q with the sum %v", r.Label, sum(t, r.Tensor))
	}
	p.order(t, "release")
	p.wants(t, "done")
	mine := ok(r.Ticket(t.Context()))(t)
	mustRelease(t, r.Tensor)
	p.order(t, "claim %s", mine)
	p.wants(t, "passed on 12497500")
	p.wants(t, "done")
	untilTrue(t, "everything is free", func() bool { return peer.o.State().Bytes.Used == 0 })
	p.order(t, "")
}

// TestPythonNames: both directions of names: publishing, the state, and the
// right to withdraw.
func TestPythonNames(t *testing.T) {
	pythontest.Interpreter(t, "numpy")
	checkDescriptors(t)
	dir := filepath.Join(t.TempDir(), "s")
	in := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TENURE_SHARE_DIR="+dir) }
	t.Run("go owns", func(t *testing.T) {
		o := ok(NewOwner())(t)
		defer o.Close()
		x := build(t, o, 100, 50)
		if err := o.Publish("weights", x); err != nil {
			t.Fatal(err)
		}
		l := ok(o.Listen("interop", InDir(dir)))(t)
		defer l.Close()
		p := pythonPart(t, "named", in)
		ok(l.Accept(t.Context()))(t)
		p.wants(t, "weights f32 [100, 50] 12497500")
		p.wants(t, "['arenas', 'blocks', 'bytes', 'command', 'instance', 'leases', 'names', 'pid', 'version'] ['held'] "+
			"[{'name': 'weights', 'dtype': 'f32', 'shape': [100, 50], 'bytes': 20000}]")
		p.wants(t, "UnknownError 1")
		p.wants(t, "RefusedError 4")
		mustRelease(t, x)
	})
	t.Run("python owns", func(t *testing.T) {
		p := pythonPart(t, "serve", in)
		p.wants(t, "listening")
		p.order(t, "2")
		var peers []*Peer
		for range 2 {
			peer := ok(Dial(t.Context(), "interop", InDir(dir)))(t)
			defer peer.Close()
			peers = append(peers, peer)
		}
		var held []*Received
		for _, peer := range peers {
			r := receive(t, peer)
			if b := contents(t, r.Tensor); r.Label != "frame" || len(b) != 1080*1920*3 || strings.Trim(b, "\x03") != "" {
				t.Errorf("%q: got other bytes", r.Label)
			}
			held = append(held, r)
		}
		for _, r := range held {
			mustRelease(t, r.Tensor)
		}
		p.order(t, "")
		p.wants(t, "0")
		p.order(t, "")
		<-p.ended
		checkNothingLeft(t, dir)
	})
	t.Run("python has published", func(t *testing.T) {
		p, peer := pythonChild(t, "lend")
		p.order(t, "0")
		p.wants(t, "offered")
		r := ok(peer.Get(t.Context(), "weights"))(t)
		if r.Tensor.Shape() != shape.MustOf(40, 30) || sum(t, r.Tensor) != 2400 {
			t.Errorf("got %s with the sum %v", r.Tensor, sum(t, r.Tensor))
		}
		s := ok(peer.State(t.Context()))(t)
		if s.PID != p.cmd.Process.Pid || len(s.Leases) != 1 || s.Leases[0].State != "held" || s.Names[0].Name != "weights" || s.Bytes.Copied != 4800 {
			t.Errorf("got state %+v", s)
		}
		if _, err := peer.Get(t.Context(), "nothing"); !errors.Is(err, ErrNotFound) {
			t.Errorf("get nothing: got %v, want ErrNotFound", err)
		}
		if err := peer.Drop(t.Context(), "weights"); err != nil {
			t.Error(err)
		}
		p.order(t, "names")
		p.wants(t, "[]")
		p.wants(t, "done")
		mustRelease(t, r.Tensor)
		p.order(t, "close")
		p.wants(t, "done")
		if _, err := peer.Receive(context.Background()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: got %v, want io.EOF", err)
		}
		p.order(t, "")
	})
}
