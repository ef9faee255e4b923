package pythontest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Command returns the Python that tests open in their own process: that of
// $TENURE_PYTHON, or else python3.
func Command() string {
	if name := os.Getenv("TENURE_PYTHON"); name != "" {
		return name
	}
	return "python3"
}

// Embedded is a Python in the process of a test, a *capi.Python. This package
// does not import its package, whose tests use this one.
type Embedded interface {
	Run(source string) error
}

// Need skips the test where there is no Python in the process, which err says,
// or where it lacks a module. The modules are imported.
func Need(t testing.TB, p Embedded, err error, modules ...string) {
	t.Helper()
	if err != nil {
		t.Skipf("no Python in this process (TENURE_PYTHON names one): %v", err)
	}
	for _, m := range modules {
		if err := p.Run("import " + m); err != nil {
			text := strings.TrimSpace(err.Error())
			t.Skipf("no module %s for Python: %s", m, text[strings.LastIndexByte(text, '\n')+1:])
		}
	}
}

// Run runs source; what an assert says is in the error.
func Run(t testing.TB, p Embedded, source string) {
	t.Helper()
	if err := p.Run(source); err != nil {
		t.Errorf("%v", err)
	}
}

// Collect deletes names of module __main__ and lets Python free the objects
// that they referred to.
func Collect(t testing.TB, p Embedded, names string) {
	t.Helper()
	Run(t, p, fmt.Sprintf("del %s\nimport gc; gc.collect()", names))
}
