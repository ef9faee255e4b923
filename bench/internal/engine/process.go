package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// ServeArg is the last argument of an engine's process.
const ServeArg = "serve"

// child marks the environment of Tenure's process.
const child = "TENURE_BENCH_CHILD"

// ServeIfAsked turns the process into Tenure's process if it was started as
// one, and does not return then. It comes first in main.
func ServeIfAsked() {
	if os.Args[len(os.Args)-1] != ServeArg {
		return
	}
	if err := Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Process is an engine's process.
type Process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// Start starts a process that speaks the protocol. env is added to the
// environment.
func Start(name string, argv, env []string) (*Process, error) {
	p := &Process{name: name, cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, nil
}

// StartTenure starts this very binary as Tenure's process: its main must call
// [ServeIfAsked]. env is added to the environment.
func StartTenure(env ...string) (*Process, error) {
	if os.Getenv(child) != "" {
		panic("BUG: a main that starts Tenure's process does not call ServeIfAsked")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return Start("Tenure", []string{self, ServeArg}, append(env, child+"=1"))
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ask sends a request and waits for the reply. An error of the engine is an
// error with the engine's name.
func (p *Process) Ask(q Request) (Reply, error) {
	line, err := json.Marshal(q)
	if err != nil {
		return Reply{}, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return Reply{}, fmt.Errorf("%s: %s: %w", p.name, q.Do, err)
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return Reply{}, fmt.Errorf("%s: %s: got no answer, want one: %w", p.name, q.Do, err)
	}
	var r Reply
	if err := json.Unmarshal(answer, &r); err != nil {
		return Reply{}, fmt.Errorf("%s: %s: got %q, want a reply: %w", p.name, q.Do, strings.TrimSpace(string(answer)), err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("%s: %s: %s", p.name, q.Do, r.Error)
	}
	return r, nil
}

// Close ends the process and waits for it.
func (p *Process) Close() error {
	line, err := json.Marshal(Request{Do: "exit"})
	if err != nil {
		return err
	}
	_, werr := p.in.Write(append(line, '\n'))
	cerr := p.in.Close()
	return errors.Join(werr, cerr, p.cmd.Wait())
}
