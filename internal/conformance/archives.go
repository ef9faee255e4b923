package conformance

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed testdata/conformance.txt
var results string

// Case names a public test case: the archive that has it, such as "onnx-node",
// and its own name.
type Case struct{ Archive, Name string }

// Cases returns the cases that are counted in docs/onnx-support.md, by archive
// and name.
func Cases() []Case {
	var list []Case
	for line := range strings.Lines(results) {
		if fields := strings.Split(line, "\t"); len(fields) > 1 {
			list = append(list, Case{fields[0], fields[1]})
		}
	}
	return list
}

// Folder returns where the command fetch puts the archives: tenure/conformance
// in the user's cache folder. It need not exist.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "tenure", "conformance"), nil
}

// Archives returns the archives of cases: those in the folder shared if it has
// any, else those that the command fetch has put into [Folder]. The error says
// how to get them.
func Archives(shared string) ([]string, error) {
	folders := []string{shared}
	if fetched, err := Folder(); err == nil {
		folders = append(folders, fetched)
	}
	for _, dir := range folders {
		if list, err := filepath.Glob(filepath.Join(dir, "*.zip")); err == nil && len(list) > 0 {
			return list, nil
		}
	}
	return nil, fmt.Errorf("%d public test cases of ONNX are not in %s: go run ./internal/conformance/fetch fetches them", len(Cases()), strings.Join(folders, " or "))
}

// Files are the files of a public test case: its model, and those of its data
// sets by folder and name.
type Files struct {
	Model []byte
	Sets  map[string]map[string][]byte
}

// Read reads an archive and returns its cases by name.
func Read(archive string) (map[string]*Files, error) {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	cases := map[string]*Files{}
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		data, err := readFile(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", archive, f.Name, err)
		}
		dir, base := path.Split(f.Name)
		name, set, _ := strings.Cut(strings.TrimSuffix(dir, "/"), "/")
		c := cases[name]
		if c == nil {
			c = &Files{Sets: map[string]map[string][]byte{}}
			cases[name] = c
		}
		if base == "model.onnx" {
			c.Model = data
			continue
		}
		if c.Sets[set] == nil {
			c.Sets[set] = map[string][]byte{}
		}
		c.Sets[set][base] = data
	}
	return cases, nil
}

func readFile(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
