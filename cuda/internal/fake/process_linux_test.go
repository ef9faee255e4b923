package fake

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// exporterVariable makes the test binary the exporter of
// TestProcesses.
const exporterVariable = "TENURE_TEST_FAKE_EXPORTER"

func TestMain(m *testing.M) {
	if os.Getenv(exporterVariable) != "" {
		if err := exportForTest(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// exportForTest shares memory in both ways, and an event with a record that
// nothing but the machine itself reaches, and waits to be killed.
func exportForTest() error {
	m := New(Config{Mode: Lazy, Granularity: small})
	if err := m.Init(); err != nil {
		return err
	}
	c, err := m.DevicePrimaryCtxRetain(0)
	if err != nil {
		return err
	}
	p, err := m.MemAlloc(c, small)
	if err != nil {
		return err
	}
	old, err := m.IpcGetMemHandle(c, p)
	if err != nil {
		return err
	}
	e, err := m.EventCreate(c, driver.EventInterprocess|driver.EventDisableTiming)
	if err != nil {
		return err
	}
	event, err := m.IpcGetEventHandle(c, e)
	if err != nil {
		return err
	}
	if err := m.MemsetD8Async(c, p, 5, small, 1); err != nil {
		return err
	}
	if err := m.EventRecord(c, e, 1); err != nil {
		return err
	}
	h, err := m.MemCreate(small, driver.AllocationProp{Exportable: true})
	if err != nil {
		return err
	}
	fd, err := m.MemExportToShareableHandle(h)
	if err != nil {
		return err
	}
	fmt.Println(hex.EncodeToString(old[:]), hex.EncodeToString(event[:]), fd)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestProcesses: memory and events of another process, before and after it is
// killed.
func TestProcesses(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), exporterVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(line)
	var old, event driver.IPCHandle
	for i, h := range []*driver.IPCHandle{&old, &event} {
		if _, err := hex.Decode(h[:], []byte(words[i])); err != nil {
			t.Fatal(err)
		}
	}
	b := start(t, Config{Mode: Lazy})
	p, err := b.IpcOpenMemHandle(b.ctx[0], old)
	b.ok(err)
	e, err := b.IpcOpenEventHandle(b.ctx[0], event)
	b.ok(err)
	b.ok(b.StreamWaitEvent(b.ctx[0], 1, e))
	if got := b.get(0, p, small); !bytes.Equal(got, bytes.Repeat([]byte{5}, small)) {
		t.Error("the bytes are not those that the other process wrote before its event")
	}
	b.quiet()
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%s", cmd.Process.Pid, words[2]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	b.ok(err)
	h, err := b.MemImportFromShareableHandle(fd)
	b.ok(err)
	b.ok(unix.Close(fd))
	q := b.mapHandle(h)
	b.ok(cmd.Process.Kill())
	_ = cmd.Wait() // reports the kill
	b.put(0, q, []byte{1})
	if got := b.get(0, q, 1); got[0] != 1 {
		t.Error("the exported memory ended with its process")
	}
	b.ok(b.EventSynchronize(b.ctx[0], e))
	if got := b.get(0, p, 1); got[0] == 5 {
		t.Error("the memory of the older interface outlived its process")
	}
	b.reported(Unwritten)
}
