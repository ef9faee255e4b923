package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/tensor/npy"
)

// makeFolder makes the folder of --output, before anything runs.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return usagef("--output: got %s, which is a file, want a folder", path)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// save writes every output into the folder and returns the files.
func save(folder, format string, infos []tenure.Info, out tenure.Outputs) ([]string, error) {
	files := make([]string, len(infos))
	for i, name := range fileNames(infos) {
		x := out[infos[i].Name]
		array, proto := npy.Write, tenure.WriteTensor
		if infos[i].Text {
			array, proto = npy.WriteStrings, tenure.WriteStrings
		}
		write := func(w io.Writer) error { return array(w, x) }
		files[i] = filepath.Join(folder, name+".npy")
		if format == "pb" {
			write = func(w io.Writer) error { return proto(w, infos[i].Name, x) }
			files[i] = filepath.Join(folder, fmt.Sprintf("output_%d.pb", i))
		}
		if err := wholefile.Write(files[i], write); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// maxName keeps file names, with their endings, within what file systems take.
const maxName = 200

// fileNames makes names of outputs into names that every file system takes and
// tells apart, those included that fold case: one that is taken gets the
// output's number.
func fileNames(infos []tenure.Info) []string {
	names, taken := make([]string, len(infos)), map[string]bool{}
	for i, info := range infos {
		name := strings.Map(func(r rune) rune {
			if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
				return '_'
			}
			return r
		}, info.Name)
		if len(name) > maxName {
			name = strings.ToValidUTF8(name[:maxName], "")
		}
		base := name
		for n := i; taken[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s_%d", base, n)
		}
		names[i], taken[strings.ToLower(name)] = name, true
	}
	return names
}
