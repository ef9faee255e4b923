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
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// figures is a process's report about itself, in bytes.
type figures struct {
	Shared       int64 // PSS of memory that processes have in common
	File         int64 // PSS of the model's file
	Private      int64 // weights in memory of the process
	Promised     int64 // weights, by the plan
	Own          int64 // private pages of the whole process
	Arena        int64 // the session's arena and scratch
	Peak         int64 // highest resident size so far
	Milliseconds int64 // to load the model and run it once
	Error        string
}

// weights is the process's part of all memory that weights take.
func (f figures) weights() int64 { return f.Shared + f.File + f.Private }

const child = "TENURE_BENCH_WEIGHTS"

// serveIfAsked turns the process into one that runs a model if it was started
// as one, and does not return then.
func serveIfAsked() {
	file := os.Getenv(child)
	if file == "" {
		return
	}
	if err := serve(file, len(os.Args) > 1 && os.Args[1] == "shared"); err != nil {
		line, _ := json.Marshal(figures{Error: err.Error()})
		fmt.Println(string(line))
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs the model once, and then says its figures for every line.
func serve(file string, shared bool) error {
	var opts []tenure.Option
	if shared {
		opts = append(opts, tenure.WithSharedWeights())
	}
	start := time.Now()
	m, err := tenure.Load(file, opts...)
	if err != nil {
		return err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	in, err := zeros(m)
	if err != nil {
		return err
	}
	out, err := s.Run(context.Background(), in)
	if err != nil {
		return err
	}
	if err := out.Release(); err != nil {
		return err
	}
	took := time.Since(start)
	p, err := s.PlanFor(context.Background(), in)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for fmt.Println("ready"); lines.Scan(); {
		f, err := look(file)
		if err != nil {
			return err
		}
		f.Milliseconds, f.Promised, f.Private = took.Milliseconds(), p.WeightBytes, m.WeightMemory().Private
		line, err := json.Marshal(f)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// zeros makes the inputs; open dimensions are 1.
func zeros(m *tenure.Model) (tenure.Inputs, error) {
	in := tenure.Inputs{}
	for _, info := range m.Inputs() {
		dims := []int{}
		for _, d := range info.Shape.Dims() {
			n, ok := d.Size()
			if !ok {
				n = 1
			}
			dims = append(dims, n)
		}
		sh, err := shape.Of(dims...)
		if err != nil {
			return nil, err
		}
		n, err := op.Type{DType: info.DType, Shape: sh}.Bytes()
		if err != nil {
			return nil, err
		}
		x, err := tensor.FromBytes(info.DType, sh, make([]byte, n))
		if err != nil {
			return nil, err
		}
		in[info.Name] = x
	}
	return in, nil
}

// look reads the system's figures for this process.
func look(file string) (f figures, err error) {
	runtime.GC()
	debug.FreeOSMemory()
	stats := memory.Stats()
	f.Arena = stats.Of(memory.Activations).Current + stats.Of(memory.Scratch).Current
	if f.Peak, err = engine.Resident("VmHWM"); err != nil {
		return f, err
	}
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return f, err
	}
	var pss *int64
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if !strings.HasSuffix(fields[0], ":") { // the first line of a mapping
			pss = nil
			switch name := strings.Join(fields[5:], " "); {
			case strings.HasPrefix(name, "/memfd:tenure:"):
				pss = &f.Shared
			case name == file:
				pss = &f.File
			}
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64) // lines without a number are none of these
		switch fields[0] {
		case "Pss:":
			if pss != nil {
				*pss += n << 10
			}
		case "Private_Clean:", "Private_Dirty:":
			f.Own += n << 10
		}
	}
	return f, nil
}

// process is one that serves.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// group starts n processes, each when the one before has run, and returns
// their reports when all have.
func group(file, dir string, n int, shared bool) (list []figures, err error) {
	var all []*process
	defer func() {
		for _, p := range all {
			err = errors.Join(err, p.in.Close(), p.cmd.Wait())
		}
	}()
	for range n {
		p, err := start(file, dir, shared)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
		if _, err := p.read(); err != nil {
			return nil, err
		}
	}
	for _, p := range all {
		if _, err := fmt.Fprintln(p.in, "look"); err != nil {
			return nil, err
		}
		f, err := p.read()
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

func start(file, dir string, shared bool) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file, err = filepath.EvalSymlinks(file)
	if err != nil {
		return nil, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self)}
	if shared {
		p.cmd.Args = append(p.cmd.Args, "shared")
	}
	p.cmd.Env = append(os.Environ(), child+"="+file, "TENURE_SHARE_DIR="+filepath.Join(dir, "share"))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, p.cmd.Start()
}

// read reads one line: that the process is ready, or its figures.
func (p *process) read() (f figures, err error) {
	if !p.out.Scan() {
		return f, fmt.Errorf("a process ended without an answer")
	}
	if p.out.Text() == "ready" {
		return f, nil
	}
	if err := json.Unmarshal(p.out.Bytes(), &f); err != nil {
		return f, err
	}
	if f.Error != "" {
		return f, errors.New(f.Error)
	}
	return f, nil
}
