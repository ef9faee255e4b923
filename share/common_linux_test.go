package share

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

const commonSize = 3<<20 + 100

// commonDir makes a folder for the test.
func commonDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "common")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TENURE_SHARE_DIR", dir)
	return filepath.Join(dir, "common")
}

func keyOf(text string) Key { return sha256.Sum256([]byte(text)) }

// fillFor writes bytes that follow from the key.
func fillFor(key Key) func([]byte) error {
	return func(dst []byte) error {
		for i := range dst {
			dst[i] = byte(i>>12) ^ key[i%len(key)]
		}
		return nil
	}
}

func wantFilled(t *testing.T, b *memory.Buffer, key Key) {
	t.Helper()
	want := make([]byte, commonSize)
	_ = fillFor(key)(want)
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got %d bytes, want the %d that belong to the key", b.Len(), commonSize)
	}
}

// inodeOf says which memory bytes are, as /proc/self/maps names it.
func inodeOf(data []byte) string {
	text, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, fmt.Sprintf("%x-", uintptr(unsafe.Pointer(unsafe.SliceData(data))))) {
			f := strings.Fields(line)
			return f[1] + " " + f[4]
		}
	}
	return "nowhere"
}

// counts are the descriptors of this process, and its mappings of shared
// memory.
func counts(t *testing.T) (fds, maps int) {
	t.Helper()
	return len(ok(os.ReadDir("/proc/self/fd"))(t)), arenaMaps()
}

func mustCommon(t *testing.T, key Key, want bool) *memory.Buffer {
	t.Helper()
	b, made, err := Common(context.Background(), key, commonSize, "test", fillFor(key))
	if err != nil {
		t.Fatal(err)
	}
	if made != want {
		t.Errorf("got made %v, want %v", made, want)
	}
	wantFilled(t, b, key)
	return b
}

func mustFree(t *testing.T, b *memory.Buffer) {
	t.Helper()
	if err := b.Release(); err != nil {
		t.Error(err)
	}
}

// child is another process that requests common bytes.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// TestCommonChild is the main function of a child: one request per line, one
// answer per request.
func TestCommonChild(t *testing.T) {
	if os.Getenv("TENURE_COMMON_CHILD") == "" {
		t.Skip("only as a child of another test")
	}
	in := bufio.NewScanner(os.Stdin)
	held := map[string]*memory.Buffer{}
	for in.Scan() {
		what, text, _ := strings.Cut(in.Text(), " ")
		key := keyOf(text)
		fill := fillFor(key)
		switch what {
		case "stuck":
			fill = func([]byte) error { fmt.Println("> filling"); time.Sleep(time.Hour); return nil }
		case "free":
			mustFree(t, held[text])
			fmt.Println("> freed")
			continue
		}
		b, made, err := Common(context.Background(), key, commonSize, "test", fill)
		if err != nil {
			fmt.Println(">", err)
			continue
		}
		held[text] = b
		wantFilled(t, b, key)
		fmt.Printf("> made=%v inode=%s ok=%v\n", made, inodeOf(b.Bytes()), !t.Failed())
	}
}

func startChild(t *testing.T, where ...func(*exec.Cmd)) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0], "-test.run=^TestCommonChild$")}
	for _, f := range where {
		f(c.cmd)
	}
	c.cmd.Env = append(os.Environ(), "TENURE_COMMON_CHILD=1")
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func (c *child) say(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		t.Fatal(err)
	}
}

func (c *child) hear(t *testing.T) string {
	t.Helper()
	for c.out.Scan() {
		if answer, ok := strings.CutPrefix(c.out.Text(), "> "); ok {
			return answer
		}
	}
	t.Fatal("the child ended without an answer")
	return ""
}

func (c *child) ask(t *testing.T, line string) string {
	t.Helper()
	c.say(t, line)
	return c.hear(t)
}

// stop returns when all threads have stopped: the signal alone is only on its
// way.
func (c *child) stop(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.cmd.Process.Pid))
		running := len(threads) == 0
		for _, f := range threads {
			text, _ := os.ReadFile(f)
			_, state, _ := strings.Cut(string(text), ") ")
			running = running || !strings.HasPrefix(state, "T")
		}
		if !running {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the child does not stop")
		}
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func TestCommonIsOneCopy(t *testing.T) {
	memorytest.Check(t)
	dir := commonDir(t)
	key := keyOf("one copy")
	before := memory.Stats()
	b := mustCommon(t, key, true)
	if now := memory.Stats(); now.Of(memory.Shared).Current-before.Of(memory.Shared).Current != int64(b.Len()) {
		t.Errorf("got %+v, want %d bytes more than %+v", now.Of(memory.Shared), b.Len(), before.Of(memory.Shared))
	}
	if b.IsExclusive() || b.Flags() != memory.ReadOnly {
		t.Errorf("got flags %v, want read-only", b.Flags())
	}
	want := fmt.Sprintf("made=false inode=%s ok=true", inodeOf(b.Bytes()))
	children := []*child{startChild(t), startChild(t), startChild(t)}
	for i, c := range children {
		if got := c.ask(t, "get one copy"); got != want {
			t.Errorf("child %d: got %q, want %q", i, got, want)
		}
		if got := c.ask(t, "get another"); strings.HasPrefix(got, "made=true") != (i == 0) {
			t.Errorf("child %d: got %q, want that the first makes the other one", i, got)
		}
	}
	again := mustCommon(t, key, false)
	if got := inodeOf(again.Bytes()); got != inodeOf(b.Bytes()) || got[:4] != "r--s" {
		t.Errorf("got %s, want %s, read-only", got, inodeOf(b.Bytes()))
	}
	mustFree(t, b)
	mustFree(t, again)
	children[0].kill() // which made the other one
	children[1].ask(t, "free one copy")
	late := startChild(t)
	if got := late.ask(t, "get one copy"); got != want {
		t.Errorf("after the maker's end: got %q, want %q", got, want)
	}
	if got := late.ask(t, "get another"); !strings.HasPrefix(got, "made=false") {
		t.Errorf("after the maker was killed: got %q, want the copy of the others", got)
	}
	for _, c := range append(children, late) {
		c.kill()
	}
	mustFree(t, mustCommon(t, key, true)) // no process had it any more
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got %v left in the folder, want nothing: the dead ones' files too", left)
	}
}

// A process that dies while it makes a copy leaves nothing, and those that wait
// for it go on.
func TestCommonMakerIsKilled(t *testing.T) {
	commonDir(t)
	maker, waiter := startChild(t), startChild(t)
	maker.say(t, "stuck half")
	if got := maker.hear(t); got != "filling" {
		t.Fatalf("got %q, want the maker at work", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	fds, maps := counts(t)
	if _, _, err := Common(ctx, keyOf("half"), commonSize, "test", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline, while another process makes it", err)
	}
	waiter.say(t, "get half")
	maker.kill()
	if got := waiter.hear(t); !strings.HasPrefix(got, "made=true") || !strings.HasSuffix(got, "ok=true") {
		t.Errorf("got %q, want it made by the one that waited", got)
	}
	b := mustCommon(t, keyOf("half"), false)
	mustFree(t, b)
	eventually(t, func() string {
		if f, m := counts(t); f > fds || m > maps {
			return fmt.Sprintf("got %d descriptors and %d mappings, want %d and %d", f, m, fds, maps)
		}
		return ""
	})
}

// eventually repeats a check until it finds no fault.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	fault := check()
	for end := time.Now().Add(30 * time.Second); fault != "" && time.Now().Before(end); fault = check() {
		time.Sleep(time.Millisecond)
	}
	if fault != "" {
		t.Error(fault)
	}
}

func TestCommonFillFails(t *testing.T) {
	memorytest.Check(t)
	dir := commonDir(t)
	key, fault := keyOf("fails"), errors.New("no such weight")
	fds, maps := counts(t)
	if _, _, err := Common(context.Background(), key, commonSize, "test", func([]byte) error { return fault }); !errors.Is(err, fault) {
		t.Errorf("got %v, want %v", err, fault)
	}
	func() {
		defer func() { _ = recover() }()
		_, _, _ = Common(context.Background(), key, commonSize, "test", func([]byte) error { panic("no") })
	}()
	if f, m := counts(t); f != fds || m != maps {
		t.Errorf("got %d descriptors and %d mappings, want %d and %d", f, m, fds, maps)
	}
	mustFree(t, mustCommon(t, key, true))
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("got %v left in the folder, want nothing", left)
	}
}

func TestCommonLeavesNothing(t *testing.T) {
	memorytest.Check(t)
	dir := commonDir(t)
	var fds, maps int
	for i := range 5 {
		a := mustCommon(t, keyOf("leaves"), true)
		b := mustCommon(t, keyOf("leaves"), false)
		mustFree(t, a)
		c := mustCommon(t, keyOf("leaves"), false) // of b
		mustFree(t, b)
		mustFree(t, c)
		f, m := counts(t)
		if i == 0 {
			fds, maps = f, m // the first round starts the network poller
		}
		if left, _ := os.ReadDir(dir); f != fds || m != maps || m != 0 || len(left) != 0 {
			t.Errorf("round %d: got %d descriptors, %d mappings, files %v, want %d, none, none", i, f, m, left, fds)
		}
	}
}

// Holders that send something else, or nothing, are skipped.
func TestCommonBadHolders(t *testing.T) {
	memorytest.Check(t)
	key := keyOf("bad")
	good, err := osmem.NewShared("tenure:test", commonSize)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	size := len(good.Bytes())
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unsealed)
	if err := errors.Join(unix.Ftruncate(unsealed, int64(size)), unix.Fallocate(unsealed, 0, 0, int64(size))); err != nil {
		t.Fatal(err)
	}
	small, err := osmem.NewShared("tenure:test", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	packet := func(key Key, size int) []byte {
		p := append([]byte("TNCB\x01\x00\x00\x00"), key[:]...)
		return append(p, byte(size), byte(size>>8), byte(size>>16), byte(size>>24), 0, 0, 0, 0)
	}
	for name, c := range map[string]struct {
		packet []byte
		fds    []int
	}{
		"says nothing and hangs up": {},
		"no descriptor":             {packet: packet(key, size)},
		"two descriptors":           {packet: packet(key, size), fds: []int{good.Fd(), good.Fd()}},
		"another key":               {packet: packet(keyOf("x"), size), fds: []int{good.Fd()}},
		"another format":            {packet: append([]byte("TNCB\x02"), packet(key, size)[5:]...), fds: []int{good.Fd()}},
		"cut off":                   {packet: packet(key, size)[:20], fds: []int{good.Fd()}},
		"too long":                  {packet: append(packet(key, size), 0), fds: []int{good.Fd()}},
		"another size":              {packet: packet(key, size+4096), fds: []int{good.Fd()}},
		"too small":                 {packet: packet(key, 4096), fds: []int{small.Fd()}},
		"unsealed":                  {packet: packet(key, size), fds: []int{unsealed}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := commonDir(t)
			if _, err := commonFolder(nil); err != nil {
				t.Fatal(err)
			}
			l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, key.String()[:16]+".0-0.sock"), Net: "unixpacket"})
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan struct{})
			go func() {
				defer close(served)
				for {
					conn, err := l.AcceptUnix()
					if err != nil {
						return
					}
					if c.packet != nil {
						_, _, _ = conn.WriteMsgUnix(c.packet, unix.UnixRights(c.fds...), nil)
					}
					_ = conn.Close()
				}
			}()
			fds, _ := counts(t)
			b := mustCommon(t, key, true)
			mustFree(t, b)
			eventually(t, func() string { // the holder closes its end when it likes
				if f, _ := counts(t); f > fds {
					return fmt.Sprintf("got %d descriptors, want %d", f, fds)
				}
				return ""
			})
			_ = l.Close()
			<-served
		})
	}
}

// A holder that is at work is waited for, for longer than one that is stopped.
// This process is both the holder and at work.
func TestCommonHolderIsSlow(t *testing.T) {
	memorytest.Check(t)
	dir := commonDir(t)
	key := keyOf("slow")
	if _, err := commonFolder(nil); err != nil {
		t.Fatal(err)
	}
	shm, err := osmem.NewShared("tenure:test", commonSize)
	if err != nil {
		t.Fatal(err)
	}
	defer shm.Close()
	_ = fillFor(key)(shm.Bytes()[:commonSize])
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, key.String()[:16]+".0-0.sock"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	holder := &commonCopy{key: key, bytes: shm.Bytes(), fd: shm.Fd()}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			time.Sleep(2 * silence)
			_ = holder.send(conn)
		}
	}()
	mustFree(t, mustCommon(t, key, false))
	_ = l.Close()
	<-served
}

// A holder that is stopped does not keep others from work.
func TestCommonHolderIsStopped(t *testing.T) {
	commonDir(t)
	holder := startChild(t)
	holder.ask(t, "get stopped")
	holder.stop(t)
	eventually(t, func() string { // one thread after the other
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", holder.cmd.Process.Pid))
		for _, task := range tasks {
			if text, _ := os.ReadFile(task); !bytes.Contains(text, []byte(") T ")) {
				return fmt.Sprintf("got %q, want it stopped", text)
			}
		}
		return ""
	})
	mustFree(t, mustCommon(t, keyOf("stopped"), true))
	if err := holder.cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	mustFree(t, mustCommon(t, keyOf("stopped"), false))
}

func TestCommonFolders(t *testing.T) {
	dir := commonDir(t)
	if err := CheckCommon(); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o750: false, 0o701: false, 0o777: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckCommon(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), strconv.FormatInt(int64(mode), 8)) {
			t.Errorf("mode %o: got %v, want accepted %v, or the mode named", mode, err, ok)
		}
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if err := CheckCommon(); err == nil {
		t.Error("a link: got no error")
	}
	t.Setenv("TENURE_SHARE_DIR", filepath.Join(t.TempDir(), strings.Repeat("long", 30)))
	fds, maps := counts(t)
	if _, _, err := Common(context.Background(), keyOf("x"), 1, "test", fillFor(keyOf("x"))); err == nil || !strings.Contains(err.Error(), "path of") {
		t.Errorf("long path: got %v, want an error that names its length", err)
	}
	if f, m := counts(t); f != fds || m != maps {
		t.Errorf("got %d descriptors and %d mappings, want %d and %d", f, m, fds, maps)
	}
	if _, _, err := Common(context.Background(), keyOf("x"), 0, "test", nil); err == nil {
		t.Error("size 0: got no error")
	}
}

// Those that meet in different folders have different copies.
func TestCommonInDir(t *testing.T) {
	memorytest.Check(t)
	commonDir(t)
	key, elsewhere := keyOf("somewhere"), InDir(filepath.Join(t.TempDir(), "e"))
	b := mustCommon(t, key, true)
	defer mustFree(t, b)
	if err := CheckCommon(elsewhere); err != nil {
		t.Fatal(err)
	}
	other, made, err := Common(context.Background(), key, commonSize, "test", fillFor(key), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer mustFree(t, other)
	if !made || inodeOf(other.Bytes()) == inodeOf(b.Bytes()) {
		t.Errorf("got made %v and the memory %s, want another than %s", made, inodeOf(other.Bytes()), inodeOf(b.Bytes()))
	}
}

func TestCommonLimit(t *testing.T) {
	memorytest.Check(t)
	commonDir(t)
	fds, maps := counts(t)
	defer memory.SetLimit(memory.SetLimit(memory.Stats().Total.Current + 1<<20))
	if _, _, err := Common(context.Background(), keyOf("limit"), commonSize, "test", fillFor(keyOf("limit"))); !errors.Is(err, memory.ErrLimit) {
		t.Errorf("got %v, want memory.ErrLimit", err)
	}
	if f, m := counts(t); f != fds || m != maps {
		t.Errorf("got %d descriptors and %d mappings, want %d and %d", f, m, fds, maps)
	}
}
