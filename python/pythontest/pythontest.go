// Package pythontest finds, or makes, the Python that tests of the Python
// client run in.
//
// [Interpreter] takes the one of $TENURE_PYTHON, or else python3 if it has the
// modules that a test needs, or else a virtual environment in the user's cache
// folder, which the first test that needs it creates and fills over the
// network. If there is none of these, the test skips and lists the attempts.
// [Command], [Need], [Run] and [Collect] are for a Python in the process of the
// test.
// Nothing here owns tensors; everything may be called from any goroutine, and
// from several processes.
package pythontest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// packages are the packages of the virtual environment: those that the client
// and its tests need.
var packages = []string{"numpy", "pytest", "ml_dtypes"}

var (
	mu     sync.Mutex
	made   string
	errDid error
)

// Interpreter returns a Python on Linux that can import the modules, or skips
// the test.
func Interpreter(t testing.TB, modules ...string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("sharing between processes needs Linux, this is %s", runtime.GOOS)
	}
	name := os.Getenv("TENURE_PYTHON")
	if name != "" {
		if err := imports(name, modules); err != nil {
			t.Skipf("TENURE_PYTHON: %v", err)
		}
		return name
	}
	err := imports("python3", modules)
	if err == nil {
		return "python3"
	}
	own, errOwn := environment(modules)
	if errOwn != nil {
		t.Skipf("no Python with %s (TENURE_PYTHON names one that has them): %v; and none could be made: %v", strings.Join(modules, ", "), err, errOwn)
	}
	return own
}

// Env is the environment of a Python that imports the client from this
// repository, whose root is given.
func Env(root string) []string {
	return append(os.Environ(), "PYTHONPATH="+filepath.Join(root, "python"), "PYTHONDONTWRITEBYTECODE=1")
}

func imports(python string, modules []string) error {
	_, err := run(time.Minute, python, "-c", "import sys; assert sys.version_info >= (3, 9), 'Python 3.9 or later is needed'\nimport "+strings.Join(modules, ", "))
	return err
}

func run(timeout time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	return text, nil
}

// environment returns the Python of the virtual environment in the cache
// folder. One attempt per process: each may wait for the network.
func environment(modules []string) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	if made == "" && errDid == nil {
		made, errDid = makeEnvironment(modules)
	}
	return made, errDid
}

func makeEnvironment(modules []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	version, err := run(time.Minute, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "tenure", "python-"+version)
	python := filepath.Join(dir, "bin", "python")
	if imports(python, modules) == nil {
		return python, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	// Others may be at it too: each makes its own, and one of them gets the
	// name.
	work, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if _, err := run(2*time.Minute, "python3", "-m", "venv", work); err != nil {
		return "", err
	}
	install := append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", "--timeout", "10"}, packages...)
	if _, err := run(4*time.Minute, filepath.Join(work, "bin", "python"), install...); err != nil {
		return "", err
	}
	os.RemoveAll(dir) // one that lacks modules, or whose Python is gone
	if err := os.Rename(work, dir); err != nil && imports(python, modules) != nil {
		return "", err
	}
	return python, imports(python, modules)
}
