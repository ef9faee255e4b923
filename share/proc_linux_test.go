package share

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// proc is a process in a role.
type proc struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	mu    sync.Mutex
	said  []string
	err   error
	ended chan struct{}
}

func startRole(t testing.TB, name, dir, role string, env ...string) *proc {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, roleVar+"="+role, "TENURE_SHARE_DIR="+dir)...)
	return startProc(t, name, cmd)
}

func startProc(t testing.TB, name string, cmd *exec.Cmd) *proc {
	t.Helper()
	p := &proc{name: name, cmd: cmd, lines: make(chan string, 1000), ended: make(chan struct{})}
	out := ok(cmd.StdoutPipe())(t)
	p.in = ok(cmd.StdinPipe())(t)
	var errors strings.Builder
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s := bufio.NewScanner(out)
		for s.Scan() {
			p.mu.Lock()
			p.said = append(p.said, s.Text())
			p.mu.Unlock()
			p.lines <- s.Text()
		}
		close(p.lines)
		p.err = cmd.Wait()
		if errors.Len() > 0 {
			p.mu.Lock()
			p.said = append(p.said, "stderr: "+errors.String())
			p.mu.Unlock()
		}
		close(p.ended)
	}()
	process, ended := cmd.Process, p.ended // and not p: a test may start a hundred thousand
	t.Cleanup(func() {
		process.Kill()
		<-ended
	})
	return p
}

// await reads lines up to one, false if the process ends before. Others go to
// each.
func (p *proc) await(want string, each func(string)) bool {
	for line := range p.lines {
		if line == want {
			return true
		}
		if each != nil {
			each(line)
		}
	}
	return false
}

// checkNothingLeft: listing the names removes the files of killed processes,
// and then the directory is empty.
func checkNothingLeft(t testing.TB, dir string) {
	t.Helper()
	names, err := Names(InDir(dir))
	if err != nil {
		t.Error(err)
	}
	for _, n := range names {
		if !n.Stale {
			t.Errorf("the name %s is still in use", n.Name)
		}
	}
	if left := ok(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("%d files are left, the first is %s", len(left), left[0].Name())
	}
}
