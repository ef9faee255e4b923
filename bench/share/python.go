package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	script = "share/peers.py"
	client = "../python" // seen from where the command runs
)

// clientCommand runs a part of the script that needs the client.
func clientCommand(ctx context.Context, python, part string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, python, append([]string{script, "tenure", part}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+client+":"+os.Getenv("PYTHONPATH"))
	return cmd
}

// allPaths lists the paths that can run here, and why others cannot.
func allPaths(self string, o options) (paths []*path, missing []string) {
	paths = []*path{
		{name: bareName, about: "two packets over a SEQPACKET socket, Go", start: func(ctx context.Context, _ int) (session, error) { return startBare(ctx, self) }},
		{name: goName, about: "share, in place", start: func(ctx context.Context, size int) (session, error) {
			return startLender(ctx, exec.CommandContext(ctx, self, consumeShare), size)
		}},
	}
	if o.python == "" {
		return only(paths, o.only), []string{"paths in Python: no -python"}
	}
	has := func(module string) error { return exec.Command(o.python, "-c", "import "+module).Run() }
	if err := has("numpy"); err != nil {
		return only(paths, o.only), []string{fmt.Sprintf("paths in Python: %s has no numpy (%v)", o.python, err)}
	}
	if _, err := os.Stat(filepath.Join(client, "tenure")); err != nil {
		missing = append(missing, pythonName+": "+err.Error())
	} else {
		paths = append(paths, &path{name: pythonName, about: "share, in place", start: func(ctx context.Context, size int) (session, error) {
			return startLender(ctx, clientCommand(ctx, o.python, "consume"), size)
		}})
	}
	for _, p := range []struct {
		name, about, mode, needs string
		copies                   bool
	}{
		{"shared_memory, reused", "a segment of multiprocessing.shared_memory that both have; a byte over a pipe", "shm", "numpy", false},
		{"shared_memory, new", "a segment for each tensor, and a copy into it", "shm-new", "numpy", true},
		{"pipe, pickle", "multiprocessing.Pipe", "pipe", "numpy", true},
		{"gRPC", "grpcio, one call over a UNIX socket", "grpc", "grpc", true},
		{"torch, reused", "torch.multiprocessing, a tensor that is shared already", "torch", "torch", false},
		{"torch, new", "torch.multiprocessing, a tensor that is moved to shared memory", "torch-new", "torch", true},
	} {
		if err := has(p.needs); err != nil {
			missing = append(missing, fmt.Sprintf("%s: %s has no module %s", p.name, o.python, p.needs))
			continue
		}
		paths = append(paths, &path{name: p.name, about: p.about, copies: p.copies, start: func(ctx context.Context, size int) (session, error) {
			return startPeers(ctx, o.python, p.mode, size)
		}})
	}
	return only(paths, o.only), missing
}

// versions returns those of Python and of the libraries that other paths use,
// as far as they are there.
func versions(python string) map[string]string {
	const script = `import importlib.metadata, platform
print("Python", platform.python_version(), sep="=")
for name in "numpy", "grpcio", "torch":
    try:
        print(name, importlib.metadata.version(name), sep="=")
    except importlib.metadata.PackageNotFoundError:
        pass`
	found := map[string]string{}
	if python == "" {
		return found
	}
	out, err := exec.Command(python, "-c", script).Output()
	if err != nil {
		return found
	}
	for _, line := range strings.Fields(string(out)) {
		name, version, _ := strings.Cut(line, "=")
		found[name] = version
	}
	return found
}

const (
	bareName   = "bare round trip"
	goName     = "Go to Go"
	pythonName = "Go to Python"
)

func only(paths []*path, name string) (kept []*path) {
	for _, p := range paths {
		if p.name == bareName || strings.Contains(p.name, name) {
			kept = append(kept, p)
		}
	}
	return kept
}

// peers is a producer in Python, which has a consumer of its own.
type peers struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	pids []int
}

func startPeers(ctx context.Context, python, mode string, size int) (session, error) {
	p := &peers{cmd: exec.CommandContext(ctx, python, script, mode, fmt.Sprint(size))}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.read(&p.pids)
}

func (p *peers) read(answer any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("got no answer of the producer: %w", err)
	}
	return json.Unmarshal(line, answer)
}

func (p *peers) turn(_ context.Context, n int, idle, limit time.Duration) (all []int64, err error) {
	if _, err := fmt.Fprintln(p.in, n, idle.Seconds(), limit.Seconds()); err != nil {
		return nil, err
	}
	return all, p.read(&all)
}

func (p *peers) processes() []int { return p.pids }
func (p *peers) close() error     { return errors.Join(p.in.Close(), p.cmd.Wait()) }
