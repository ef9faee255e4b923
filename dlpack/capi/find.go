//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// Interpreter is the location of an installation of Python: its library and its
// packages.
type Interpreter struct {
	Library string   // the path of libpython, for Open
	Path    []string // directories of packages, in order
}

// findSource prints the result of FindPython. An executable may have been
// linked without the library beside it.
const findSource = `
import json, os, sys, sysconfig
var = lambda name: sysconfig.get_config_var(name) or ""
names = [n for n in (var("INSTSONAME"), var("LDLIBRARY"), "libpython%d.%d.so.1.0" % sys.version_info[:2],
    "libpython%d.%d.dylib" % sys.version_info[:2], "python%d%d.dll" % sys.version_info[:2]) if n and not n.endswith(".a")]
dirs = [d for d in (var("LIBDIR"), var("LIBDIR") + "/" + var("MULTIARCH"), "/usr/lib/" + var("MULTIARCH"),
    os.path.join(sys.base_prefix, "lib"), sys.base_prefix, var("PYTHONFRAMEWORKPREFIX")) if d]
found = [p for p in (os.path.join(d, n) for d in dirs for n in names) if os.path.isfile(p)]
print(json.dumps({"Library": found[0] if found else "", "Path": [p for p in sys.path if p],
    "Missing": "%s in %s" % (" or ".join(dict.fromkeys(names)), ", ".join(dict.fromkeys(dirs)))}))
`

// FindPython runs a Python executable, such as python3 or that of a virtual
// environment, to find its library and packages.
func FindPython(ctx context.Context, executable string) (Interpreter, error) {
	out, err := exec.CommandContext(ctx, executable, "-c", findSource).Output()
	if err != nil {
		return Interpreter{}, fmt.Errorf("capi: find python: run %s: %w", executable, err)
	}
	var found struct {
		Interpreter
		Missing string
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return Interpreter{}, fmt.Errorf("capi: find python: answer of %s: %w", executable, err)
	}
	if found.Library == "" {
		return Interpreter{}, fmt.Errorf("capi: find python: %s has no shared library, want %s", executable, found.Missing)
	}
	return found.Interpreter, nil
}
