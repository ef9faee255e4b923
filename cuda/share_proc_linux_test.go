package cuda_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure/share"
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
	out := must(cmd.StdoutPipe())(t)
	p.in = must(cmd.StdinPipe())(t)
	var faults strings.Builder
	cmd.Stderr = &faults
	must(0, cmd.Start())(t)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.said = append(p.said, s.Text())
			p.mu.Unlock()
			p.lines <- s.Text()
		}
		close(p.lines)
		p.err = cmd.Wait()
		if faults.Len() > 0 {
			p.mu.Lock()
			p.said = append(p.said, "stderr: "+faults.String())
			p.mu.Unlock()
		}
		close(p.ended)
	}()
	process, ended := cmd.Process, p.ended
	t.Cleanup(func() {
		_ = process.Kill()
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

func (p *proc) tell(format string, args ...any) { fmt.Fprintf(p.in, format+"\n", args...) }

// finish waits for the end and returns the faults: of the end, and of lines
// that no process may print.
func (p *proc) finish(killed bool) (wrong []string) {
	go p.await("", nil)
	select {
	case <-p.ended:
	case <-time.After(60 * time.Second):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.ended
		return []string{fmt.Sprintf("%s did not end:\n%s", p.name, strings.Join(p.said, "\n"))}
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	for _, line := range p.said {
		if strings.HasPrefix(line, "violation") || strings.HasPrefix(line, "leak") || strings.HasPrefix(line, "failed") {
			wrong = append(wrong, p.name+" says "+line)
		}
	}
	switch gotKilled := status.Signaled() && status.Signal() == syscall.SIGKILL; {
	case gotKilled != killed:
		wrong = append(wrong, fmt.Sprintf("%s: killed is %v, want %v:\n%s", p.name, gotKilled, killed, strings.Join(p.said, "\n")))
	case !killed && (len(p.said) == 0 || p.said[len(p.said)-1] != "clean"):
		wrong = append(wrong, fmt.Sprintf("%s ended with %v and without a word:\n%s", p.name, p.err, strings.Join(p.said, "\n")))
	}
	return wrong
}

// checkNothingLeft: listing the names removes the files of killed processes,
// and then the directory is empty.
func checkNothingLeft(t testing.TB, dir string) {
	t.Helper()
	names, err := share.Names(share.InDir(dir))
	if err != nil {
		t.Error(err)
	}
	for _, n := range names {
		if !n.Stale {
			t.Errorf("the name %s is still in use", n.Name)
		}
	}
	if left := must(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("%d files are left, the first is %s", len(left), left[0].Name())
	}
}
