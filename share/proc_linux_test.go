package share

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
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func (p *proc) tell(format string, args ...any) { fmt.Fprintf(p.in, format+"\n", args...) }

// await reads lines up to one, false if the process ends before. Others go to each.
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

// finish waits for the end and returns what is wrong with it, and what no process may say.
func (p *proc) finish(killed bool) (wrong []string) {
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.cmd.Process.Signal(syscall.SIGQUIT)
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

// checkNothingLeft: a look at the names clears what the killed left, and then the directory is empty.
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
