package pythontest_test

import (
	"os/exec"
	"testing"

	"github.com/tenure-go/tenure/python/pythontest"
)

func ExampleInterpreter() {
	_ = func(t *testing.T) {
		cmd := exec.Command(pythontest.Interpreter(t, "numpy"), "-c", "import tenure")
		cmd.Env = pythontest.Env("..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
