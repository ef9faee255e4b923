package wholefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/wholefile"
)

func text(s string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		_, _ = io.WriteString(w, s)
		return err
	}
}

func write(t *testing.T, path, s string) {
	t.Helper()
	if err := wholefile.Write(path, text(s, nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); string(got) != s {
		t.Fatalf("got %q, %v, want %q", got, err, s)
	}
}

// alone wants no other files in a folder than those.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("got the files %q, want %q", got, names)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	write(t, path, "old")
	broken := errors.New("broken")
	err := wholefile.Write(path, text(strings.Repeat("half", 1<<16), broken))
	if !errors.Is(err, broken) || err.Error() != path+": broken" {
		t.Errorf("got %v, want %s: broken", err, path)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("after a write that failed: got %q, want what was there", got)
	}
	write(t, path, "new")
	alone(t, dir, "x")
}

func TestWriteKeepsWhatReadersHave(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file is not replaced there")
	}
	path := filepath.Join(t.TempDir(), "x")
	write(t, path, "old")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, path, "something longer")
	if got, err := io.ReadAll(f); string(got) != "old" {
		t.Errorf("got %q, %v from the file that was open, want the old text", got, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("got mode %v, %v, want that of the file that was there", info.Mode(), err)
	}
}

func TestWriteThroughALink(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "x"), filepath.Join(dir, "y")
	write(t, path, "old")
	if err := os.Symlink("x", link); err != nil {
		t.Skip("no links here: ", err)
	}
	write(t, link, "new")
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("got %q in the file that the link names, want the new text", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("got %v, %v, want the link to stay", info.Mode(), err)
	}
	alone(t, dir, "x", "y")
}

func TestWriteIntoADevice(t *testing.T) {
	if _, err := os.Stat("/dev/null"); err != nil {
		t.Skip(err)
	}
	if err := wholefile.Write("/dev/null", text("x", nil)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	if err := wholefile.Write("/dev/full", text("x", nil)); err == nil || !strings.HasPrefix(err.Error(), "/dev/full: no space") {
		t.Errorf("got %v, want that there is no space", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "none", "x")
	if err := wholefile.Write(path, text("x", nil)); !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "none") != 1 {
		t.Errorf("a folder that is not there: got %v, want fs.ErrNotExist with the name once", err)
	}
	if err := wholefile.Write(dir, text("x", nil)); err == nil || err.Error() != dir+": got a directory, want a file" {
		t.Errorf("a directory: got %v", err)
	}
	alone(t, dir)
}
