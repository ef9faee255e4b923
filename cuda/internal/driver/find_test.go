package driver

import (
	"errors"
	"strings"
	"testing"
)

func TestFindLibrary(t *testing.T) {
	gone := errors.New("libcuda.so.1: cannot open\nshared object file")
	none := func(string) (uintptr, error) { return 0, gone }
	t.Setenv(libraryVariable, "")
	_, _, err := findLibrary("", none)
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got error %v, want one line", err)
	}
	t.Setenv(libraryVariable, "/nowhere/libcuda.so")
	_, _, err = findLibrary("", none)
	if got, want := err.Error(), "driver: load CUDA driver: libcuda.so.1: cannot open shared object file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tried := ""
	some := func(p string) (uintptr, error) { tried = p; return 7, nil }
	if name, h, err := findLibrary("", some); err != nil || h != 7 || name != "/nowhere/libcuda.so" || tried != name {
		t.Errorf("got %q, %d, %v of %q, want the library of the environment", name, h, err, tried)
	}
	if name, _, err := findLibrary("mine.so", some); err != nil || name != "mine.so" {
		t.Errorf("got %q, %v, want the named library", name, err)
	}
}

func TestWellKnown(t *testing.T) {
	if got := wellKnown("linux", "amd64"); got[0] != "libcuda.so.1" || !strings.Contains(strings.Join(got, " "), "/usr/lib/x86_64-linux-gnu/libcuda.so.1") {
		t.Errorf("got %q", got)
	}
	if got := wellKnown("darwin", "arm64"); got != nil {
		t.Errorf("got %q, want nothing: there is no driver", got)
	}
}
