package conformance

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

//go:embed testdata/conformance.txt
var results string

// Case names a public test case: the archive that has it, such as "onnx-node", and its own name.
type Case struct{ Archive, Name string }

// Cases returns the cases that are counted in docs/onnx-support.md, by archive and name.
func Cases() []Case {
	var list []Case
	for line := range strings.Lines(results) {
		if fields := strings.Split(line, "\t"); len(fields) > 1 {
			list = append(list, Case{fields[0], fields[1]})
		}
	}
	return list
}

// Folder returns where the command fetch puts the archives: tenure/conformance in the user's cache folder. It need not exist.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "tenure", "conformance"), nil
}
