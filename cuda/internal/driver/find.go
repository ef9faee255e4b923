package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The oldest driver that Open accepts. cuGetProcAddress came with 11.3, and
// 11.4 has all functions except those that are optional in any case. Its
// driver, 470, is also the last one for GPUs before Maxwell; 465, of 11.3, was
// replaced after two months.
const (
	OldestVersion = 11040
	oldest        = "CUDA 11.4 or newer (NVIDIA driver 470)"
)

// libraryVariable names the driver's library to the exclusion of all others.
const libraryVariable = "TENURE_LIBCUDA"

// wellKnown returns where to look for the driver's library, in order. The
// first is a name, which the loader looks up; the others are for containers
// and for systems whose loader is not told of them.
func wellKnown(goos, goarch string) []string {
	switch goos {
	case "windows":
		return []string{"nvcuda.dll"}
	case "linux":
		triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu", "ppc64le": "powerpc64le-linux-gnu"}[goarch]
		places := []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.1", "/run/opengl-driver/lib/libcuda.so.1"}
		if triplet == "" {
			return places
		}
		return append(places, "/usr/lib/"+triplet+"/libcuda.so.1", "/usr/lib/"+triplet+"/nvidia/libcuda.so.1", "/usr/lib/"+triplet+"/tegra/libcuda.so.1")
	}
	return nil // NVIDIA has no driver for others
}

// findLibrary loads the driver's library with load: that of path or, if path is
// empty, that of the environment or of a well-known place.
func findLibrary(path string, load func(string) (uintptr, error)) (name string, handle uintptr, err error) {
	if path == "" {
		path = os.Getenv(libraryVariable)
	}
	if path != "" {
		if handle, err = load(path); err != nil {
			return "", 0, fmt.Errorf("driver: load CUDA driver: %s", oneLine(err))
		}
		return path, handle, nil
	}
	places := wellKnown(runtime.GOOS, runtime.GOARCH)
	if places == nil {
		return "", 0, fmt.Errorf("driver: there is no CUDA driver for %s", runtime.GOOS)
	}
	first := errors.New("")
	for i, p := range places {
		if i > 0 {
			// A file that is there and does not load is the answer; one
			// that is not there is not worth a word.
			if _, err := os.Stat(p); err != nil {
				continue
			}
		}
		if handle, err = load(p); err == nil {
			return p, handle, nil
		}
		if i == 0 {
			first = err
			continue
		}
		return "", 0, fmt.Errorf("driver: load CUDA driver: %s", oneLine(err))
	}
	var folders []string
	for _, p := range places[1:] {
		folders = append(folders, filepath.Dir(p))
	}
	also := ""
	if len(folders) > 0 {
		also = ", nor is it in " + strings.Join(folders, ", ")
	}
	return "", 0, fmt.Errorf("driver: no CUDA driver: %s%s; install NVIDIA's driver, or name its library in %s", oneLine(first), also, libraryVariable)
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
