//go:build linux || darwin

package capi

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// differences are the tests of other libraries that a tensor as the producer
// does not pass, with the row of docs/dlpack.md that has the reason. Nothing
// else may fail, and each of these must.
var differences = map[string]map[string]string{
	"numpy": {
		"test_dunder_dlpack_refcount[max_version0]": "given back", "test_dunder_dlpack_refcount[None]": "given back",
		"test_dunder_dlpack_refcount[max_version2]": "given back", "test_dunder_dlpack_refcount[max_version3]": "given back",
		"test_from_dlpack_refcount[arr0]": "given back", "test_from_dlpack_refcount[arr1]": "given back",
		"test_dunder_dlpack_stream": "a stream", "test_dunder_dlpack_copy": "`copy=False`", "test_readonly": "read-only", "test_writeable": "for reading",
	},
	"torch": {
		"test_dlpack_protocol_conversion[dtype20]": "two lanes", "test_dlpack_capsule_conversion[dtype20]": "two lanes",
		"test_dlpack_shared_storage_is_writable": "for reading", "test_dlpack_keeps_strides": "size 1",
		"test_copy_of_unversioned": "`copy=False`", "test_stream_of_the_processor": "a stream",
	},
}

// ownTests runs a library's tests of DLPack in this process; tests is their
// source, empty for the file that numpy installs.
func ownTests(t *testing.T, library, tests string, least int) {
	p := python(t, library, "pytest")
	memorytest.Check(t)
	source := ok(os.ReadFile("testdata/numpys_own.py"))(t)
	call := "passed, failed = run()"
	if tests != "" {
		call = "passed, failed = run(" + quote(string(ok(os.ReadFile(tests))(t))) + ")"
	}
	run(t, p, string(source)+"\n"+call+`
report = ["passed " + name for name in passed] + ["failed " + name for name in failed]
class Report:
    def __dlpack_device__(self): raise RuntimeError("|" + "\n".join(report) + "|")
`)
	_, err := p.Get("Report()")
	parts := strings.Split(err.Error(), "|")
	collect(t, p, "passed, failed, report, Report")
	if len(parts) != 3 {
		t.Fatalf("got %v, want a report", err)
	}
	var passed, failed []string
	for _, line := range strings.Split(parts[1], "\n") {
		if name, is := strings.CutPrefix(line, "passed "); is {
			passed = append(passed, name)
		} else if name, is := strings.CutPrefix(line, "failed "); is {
			failed = append(failed, name)
		}
	}
	t.Logf("%d passed, %d differ", len(passed), len(failed))
	if len(passed) < least {
		t.Errorf("got %d tests that pass, want at least %d", len(passed), least)
	}
	text := string(ok(os.ReadFile("../../docs/dlpack.md"))(t))
	for name, reason := range differences[library] {
		if !slices.Contains(failed, name) {
			t.Errorf("%s passes, or is no more: want it out of the list", name)
		}
		if !strings.Contains(text, "| "+reason) {
			t.Errorf("%s: docs/dlpack.md has no row that begins with %q", name, reason)
		}
	}
	for _, name := range failed {
		if differences[library][name] == "" {
			t.Errorf("%s fails, without a reason in the list (TENURE_SHOW=1 shows how)", name)
		}
	}
}

// TestNumpysOwn runs the tests that numpy 2.2 and later install.
func TestNumpysOwn(t *testing.T) {
	p := numpy2(t)
	if err := p.Run("import os\nassert tuple(map(int, numpy.__version__.split('.')[:2])) >= (2, 2)\n" +
		"assert os.path.exists(os.path.join(os.path.dirname(numpy.__file__), '_core', 'tests', 'test_dlpack.py'))"); err != nil {
		t.Skip("this numpy has no tests, or older ones")
	}
	ownTests(t, "numpy", "", 70)
}

// TestTorchs runs what torch's tests ask for.
func TestTorchs(t *testing.T) {
	ownTests(t, "torch", "testdata/torchs_own.py", 50)
}
