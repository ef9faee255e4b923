package command

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// lent sets up an owner under the name "camera" and a consumer of it that
// holds one frame, which the owner has let go of.
func lent(t *testing.T) (dir string, frame *share.Received) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: sharing with other processes needs Linux")
	}
	memorytest.Check(t)
	dir = filepath.Join(t.TempDir(), "names")
	owner, err := share.NewOwner(share.WithLimit(64 << 20))
	if err != nil {
		t.Fatal(err)
	}
	l, err := owner.Listen("camera", share.InDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := share.Dial(t.Context(), "camera", share.InDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := tensor.Make(owner, dtype.F32, shape.MustOf(1024, 100))
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Offer(t.Context(), x, share.Label("frame \x1b[31m1")); err != nil {
		t.Fatal(err)
	}
	if err := x.Release(); err != nil {
		t.Fatal(err)
	}
	if frame, err = consumer.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, close := range []func() error{frame.Tensor.Release, consumer.Owner().Close, owner.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return dir, frame
}

func outputOf(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := static.execute(t.Context(), args, &out, &errs); code != want {
		t.Fatalf("%v: got exit code %d, want %d: %s", args, code, want, &errs)
	}
	return out.String(), errs.String()
}

func TestShareListsLeases(t *testing.T) {
	dir, _ := lent(t)
	got, _ := outputOf(t, 0, "share", "list", "--dir", dir)
	for _, want := range []string{
		`^camera: process \d+ \(\S+\), 400 KiB in 1 arena of 4\.00 MiB, limit 64\.0 MiB; 1 lease, 400 KiB in limbo\n`,
		`\n  arena +[0-9a-f]+ +4\.00 MiB +used 400 KiB +1 limbo +1 peer *\n`,
		`\n  held +\d+ \S+ +400 KiB +\d+m?s +[0-9a-f]+\+0 +"frame \\x1b\[31m1"\n`,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
	got, _ = outputOf(t, 0, "share", "list", "camera", "--json", "--dir", dir)
	var all listing
	if err := json.Unmarshal([]byte(got), &all); err != nil {
		t.Fatal(err)
	}
	if owners := all.Names; len(owners) != 1 || owners[0].Name != "camera" || len(owners[0].State.Leases) != 1 || owners[0].State.Leases[0].Bytes != 409600 || owners[0].State.Leases[0].Label != "frame \x1b[31m1" {
		t.Errorf("got %s, want one lease of 409600 bytes", got)
	}
}

// TestShareListGoesOn: a name whose process does not answer takes nothing from
// the others.
func TestShareListGoesOn(t *testing.T) {
	dir, _ := lent(t)
	deaf := listenDeaf(t, filepath.Join(dir, "deaf.sock"))
	defer deaf.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	owners, err := (&placeFlags{dir: dir}).owners(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(owners) != 2 || owners[0].State == nil || owners[1].Name != "deaf" || !strings.Contains(owners[1].Error, "HELLO") {
		t.Fatalf("got %+v, want camera's state and an error of deaf", owners)
	}
	var text bytes.Buffer
	if err := (listing{Names: owners}).print(&text, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "\ndeaf: share dial: ") {
		t.Errorf("got\n%s\nwant a line about deaf", &text)
	}
	if err := failures(owners); err == nil || err.Error() != "1 of 2 names did not answer" {
		t.Errorf("got %v, want 1 of 2 names", err)
	}
}

// listenDeaf listens and says nothing. It holds the lock of the name, as a
// listener does.
func listenDeaf(t *testing.T, path string) net.Listener {
	t.Helper()
	owner, err := share.NewOwner()
	if err != nil {
		t.Fatal(err)
	}
	l, err := owner.Listen("deaf", share.InDir(filepath.Dir(path)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owner.Close(); err != nil {
			t.Error(err)
		}
	})
	return replaceSocket(t, l.Path())
}

func TestWatchScreen(t *testing.T) {
	dir, _ := lent(t)
	all, err := (&placeFlags{dir: dir}).look(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b bytes.Buffer
	if err := drawScreen(&b, all, now, 30, 24); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "\x1b[H03:04:05  (interrupt to end)\x1b[K\n") || !strings.HasSuffix(got, "\x1b[J") || strings.Contains(got, "\x1b[31m") {
		t.Errorf("got %q, want the time first, the rest cleared, and no colours of other processes", got)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if n := len(strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(line)); n > 30 {
			t.Errorf("got a line of %d characters, want at most 30: %q", n, line)
		}
	}
	b.Reset()
	if err := drawScreen(&b, all, now, 80, 5); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "\n") != 4 || !strings.Contains(got, "... 2 more lines") {
		t.Errorf("got %q, want four lines, the last about two more", got)
	}
	b.Reset()
	if err := plainLines(&b, listing{Names: []ownerState{all.Names[0], {Name: "old", Stale: true}, {Name: "deaf", Error: "no\x1b[2J answer"}}}, now); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "03:04:05 camera: process ") || lines[1] != "03:04:05 old: its process was killed" || lines[2] != "03:04:05 deaf: no?[2J answer" {
		t.Errorf("got %q, want a line for each", lines)
	}
}

// TestCommonInLists: processes that do not answer are shown as such, and none
// can write to the terminal.
func TestCommonInLists(t *testing.T) {
	all := listing{Common: []share.CommonBytes{
		{Key: strings.Repeat("0123456789abcdef", 4), Bytes: 3 << 20, Holders: []share.CommonHolder{{PID: 7, Command: "a\x1b[31m"}, {PID: 12, Command: "b"}}},
		{Key: "fedcba9876543210", Holders: []share.CommonHolder{{PID: 9, Command: "c", Silent: true}}},
	}}
	var b bytes.Buffer
	if err := all.print(&b, false); err != nil {
		t.Fatal(err)
	}
	const want = `common 0123456789abcdef: 3.00 MiB in 2 processes
  has  7 a?[31m
  has  12 b

common fedcba9876543210: of unknown size, because no process answers, in 1 process
  silent  9 c
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
	b.Reset()
	if err := plainLines(&b, all, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "03:04:05 common 0123456789abcdef: 3.00 MiB in 2 processes\n03:04:05 common fedcba9876543210: ") {
		t.Errorf("got %q, want a line for each", got)
	}
}

// TestServeSafetensors: each tensor of a file is published as it is.
func TestServeSafetensors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: sharing with other processes needs Linux")
	}
	memorytest.Check(t)
	x, err := tensor.Of([]int16{1, -2, 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	file := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := safetensors.WriteFile(file, nil, safetensors.Entry{Name: "a.b", Tensor: x}, safetensors.Entry{Name: "c", Tensor: x}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "names")
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var out bytes.Buffer
	go func() {
		served <- (&serveFlags{placeFlags: placeFlags{dir: dir}}).serve(ctx, &out, []string{file})
	}()
	got, _ := outputOf(t, 0, "share", "get", "weights", "a.b", "--dir", dir, "--wait", "20s")
	if want := "i16[3] [ 1 -2  3]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "weights: 2 tensors, 12 B, at ") {
		t.Errorf("got %q, want a line about two tensors", out.String())
	}
}

// replaceSocket replaces a socket by one that no process serves.
func replaceSocket(t *testing.T, path string) net.Listener {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestForeignArenas: memory of other allocators is listed as such.
func TestForeignArenas(t *testing.T) {
	var b strings.Builder
	printState(&b, "torch", &share.State{Arenas: []share.ArenaState{{ID: "5", Foreign: true, Bytes: 2 << 20, Used: 4096}}}, false)
	if want := "  arena\t5\t2.00 MiB\tused 4.00 KiB in place\t"; !strings.Contains(b.String(), want) {
		t.Errorf("got %q, want it with %q", b.String(), want)
	}
}
