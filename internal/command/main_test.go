package command

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tenure-go/tenure"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// static is the program without devices.
var static = Program{Name: "tenure"}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tenure": func() { os.Exit(static.Main()) }, "serve-model": serveModel})
}

// serveModel plays a service in scripts: it runs the model of its first
// argument on the picture of the second, with shared weights, and is ready for
// the next until it is interrupted.
func serveModel() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	f := &runFlags{inputs: os.Args[2:]}
	serve := func() error {
		m, err := tenure.Load(os.Args[1], tenure.WithSharedWeights())
		if err != nil {
			return err
		}
		defer m.Close()
		b, err := f.sizes.bind(m)
		if err != nil {
			return err
		}
		in, err := f.read(m, b)
		if err != nil {
			return err
		}
		a, err := f.answer(ctx, m, in, new(work))
		if err != nil {
			return err
		}
		<-ctx.Done()
		release(in)
		return a.out.Release()
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestScripts runs the command as a user would; the first line of each script
// describes it. In scripts $REPO is the repository.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("REPO", root)
			return writeFixtures(e.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs `exits CODE tenure ARGS...` and wants that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if e, ok := err.(*exec.ExitError); ok {
		code = strings.TrimPrefix(e.ProcessState.String(), "exit status ")
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if code != args[0] {
		ts.Fatalf("got exit code %s, want %s", code, args[0])
	}
}

// TestPromiseIsMeasured runs a model and wants the bytes that were promised.
func TestPromiseIsMeasured(t *testing.T) {
	root := filepath.Join("..", "..", "examples", "digits")
	for _, threads := range []string{"1", "2"} {
		var stdout, stderr bytes.Buffer
		code := static.execute(context.Background(), []string{"run", filepath.Join(root, "digits.onnx"), "-i", filepath.Join(root, "samples", "3.png"), "--json", "--threads", threads}, &stdout, &stderr)
		if code != 0 {
			t.Fatalf("got exit code %d: %s", code, &stderr)
		}
		var a answerJSON
		if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if sum := a.ArenaBytes + a.ScratchBytes + a.IOBytes; a.MeasuredBytes == 0 || a.MeasuredBytes != a.PromisedBytes || a.PromisedBytes != sum {
			t.Errorf("%s threads: got %d bytes measured, %d promised, %d as a sum, want the same", threads, a.MeasuredBytes, a.PromisedBytes, sum)
		}
	}
}
