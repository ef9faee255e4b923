package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// server is a process that answers requests.
type server struct {
	cmd      *exec.Cmd
	address  string // HOST:PORT
	profiles string // of the address with /debug/pprof
}

// build makes the command tenure in the folder for files.
func (b *bench) build() error {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	b.root = filepath.Dir(filepath.Dir(strings.TrimSpace(string(module))))
	b.command = filepath.Join(b.dir, "tenure")
	cmd := exec.Command("go", "build", "-o", b.command, "./cmd/tenure")
	cmd.Dir = b.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building tenure: %w: %s", err, out)
	}
	return nil
}

var addresses = regexp.MustCompile(`http://([0-9.]+:\d+)`)

// start starts a server and waits until it says where it is. A cpu of zero or
// more is the one processor that it runs on.
func start(cmd *exec.Cmd, cpu int) (*server, error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startOn(cmd, cpu); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	found := addresses.FindAllStringSubmatch(line, -1)
	if err != nil || len(found) == 0 {
		s.stop()
		return nil, fmt.Errorf("%s: got %q and %v, want the address of the server", cmd.Path, line, err)
	}
	s.address, s.profiles = found[0][1], found[len(found)-1][1]
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return s, nil
}

// startOn starts a command on one processor: its threads have the mask of the
// thread that starts it.
func startOn(cmd *exec.Cmd, cpu int) error {
	if cpu < 0 {
		return cmd.Start()
	}
	started := make(chan error, 1)
	go func() { // on a thread of its own, which ends with its mask
		var mask unix.CPUSet
		mask.Set(cpu)
		if err := pinThread(&mask); err != nil {
			started <- err
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}

// tenure starts tenure serve at a free port.
func (b *bench) tenure(args ...string) (*server, error) {
	cmd := exec.Command(b.command, append([]string{"serve", "--address", "127.0.0.1:0", "--pprof"}, args...)...)
	return start(cmd, -1)
}

// plain starts the server without Tenure.
func (b *bench) plain() (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asPlain+"=1")
	return start(cmd, -1)
}

// stop ends the process.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// end ends tenure as an operator does, and reports how.
func (s *server) end() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		s.stop()
		return errors.New("got no end of the server within a minute of an interrupt")
	}
}

// fetch gets a page of the server.
func fetch(url string) (string, error) {
	q, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: got %s, want 200", url, r.Status)
	}
	return string(text), err
}

var allocated = regexp.MustCompile(`(?m)^# TotalAlloc = (\d+)`)

// allocated is how many bytes the server's Go heap has given out.
func (s *server) allocated() (int64, error) {
	text, err := fetch("http://" + s.profiles + "/debug/pprof/heap?debug=1")
	if err != nil {
		return 0, err
	}
	m := allocated.FindStringSubmatch(text)
	if m == nil {
		return 0, errors.New("/debug/pprof/heap: got no TotalAlloc")
	}
	return strconv.ParseInt(m[1], 10, 64)
}

// metrics are the figures of /metrics; those of models are summed.
func (s *server) metrics() (map[string]float64, error) {
	text, err := fetch("http://" + s.address + "/metrics")
	if err != nil {
		return nil, err
	}
	m := map[string]float64{}
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		name, _, _ := strings.Cut(line[:at], "{")
		if v, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64); err == nil {
			m[name] += v
		}
	}
	return m, nil
}

// resident reads a field of the process's status, in bytes: VmRSS is what it
// has in memory, VmHWM the most that it has had, RssAnon what is no file's.
func (s *server) resident(field string) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field+":" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

// most reads a field of the process's status until over is closed, and returns
// the most that it saw.
func (s *server) most(field string, over <-chan struct{}) (most int64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, s.resident(field))
		select {
		case <-over:
			return most
		case <-tick.C:
		}
	}
}
