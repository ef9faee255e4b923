package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// In this variable's presence the test binary is the command.
const asCommand = "TENURE_CUDA_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// run runs the command with the driver in library.
func run(t *testing.T, library string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "TENURE_LIBCUDA="+library)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState == nil {
			t.Skip(err) // a platform without processes
		}
		code = cmd.ProcessState.ExitCode()
	}
	return out.String(), errs.String(), code
}

// Without a driver the program lists the host and one line that says why, and
// everything else works.
func TestWithoutDriver(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.so")
	for _, c := range []struct {
		args string
		code int
		want string // of both outputs
	}{
		{"devices", 0, `(?m)^host .*\nno cuda: cuda: no CUDA device: driver: .+$`},
		{"devices --json", 0, `"without": \{\s+"cuda": "cuda: no CUDA device: .+"\s+\}`},
		{"devices cuda", 1, `^tenure-cuda: devices: got cuda, and there is none: cuda: no CUDA device: driver: .+\n$`},
		{"bench transfer", 1, `^tenure-cuda: bench transfer: got no device, want one: cuda: no CUDA device: .+\n$`},
		{"inspect ../../examples/digits/digits.onnx", 0, `^.+\n`},
	} {
		out, errs, code := run(t, missing, strings.Fields(c.args)...)
		if code != c.code || !regexp.MustCompile(c.want).MatchString(out+errs) {
			t.Errorf("%s: got exit code %d and\n%s%swant %d and %s", c.args, code, out, errs, c.code, c.want)
		}
	}
}

// TestWithDriver runs the command with the test driver of package driver, which
// has two devices in host memory.
func TestWithDriver(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the test driver is for Linux")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to compile the test driver")
	}
	library := filepath.Join(t.TempDir(), "libcuda.so")
	source := filepath.Join("..", "..", "cuda", "internal", "driver", "testdata", "libcuda.c")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-pthread", "-o", library, source).CombinedOutput(); err != nil {
		t.Skipf("the test driver does not compile: %v\n%s", err, out)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"devices", `(?m)^host .*\ncuda:0  Shim 0, compute capability 8\.\d, 1 multiprocessors, driver of version 12\.9\n  uuid     GPU-00010203-0405-0607-0809-0a0b0c0d0e0f\n  memory   5\.00 GiB, of which 4\.00 GiB are free\n  has      virtual memory \(arenas can be shared\), stream-ordered pools\n  arena    0 B in 0 chunks: 0 B in use, 0 B kept\ncuda:1  Shim 1`},
		{"devices cuda:1", `^cuda:1  Shim 1`},
		{"bench transfer --device cuda:1 --mib 4 --runs 1", `(?m)^cuda:1 \(Shim 1\), 4\.00 MiB, median of 1 run\n(.* GB/s .*\n){4}arena: 8\.00 MiB in 2 chunks: 0 B in use, 8\.00 MiB kept\n$`},
	} {
		out, errs, code := run(t, library, strings.Fields(c.args)...)
		if code != 0 || errs != "" || !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%s: got exit code %d and\n%s%swant 0 and %s", c.args, code, out, errs, c.want)
		}
	}
}
