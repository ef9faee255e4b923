package command

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

// save writes every output into the folder: a file for each tensor and each
// element of a sequence, or one for each output that the model declares.
func (a *answer) save(folder, format string, m *tenure.Model) error {
	a.files = make([]string, len(a.infos))
	if format == "npy" {
		for i, name := range fileNames(a.infos) {
			x, array := a.shown[a.infos[i].Name], npy.Write
			if a.infos[i].Text {
				array = npy.WriteStrings
			}
			a.files[i] = filepath.Join(folder, name+".npy")
			if err := wholefile.Write(a.files[i], func(w io.Writer) error { return array(w, x) }); err != nil {
				return err
			}
		}
		a.saved = a.files
		return nil
	}
	for i, info := range inFile(m.Outputs()) {
		file := filepath.Join(folder, fmt.Sprintf("output_%d.pb", i))
		if err := wholefile.Write(file, func(w io.Writer) error { return a.writeProto(w, info) }); err != nil {
			return err
		}
		a.saved = append(a.saved, file)
	}
	for i, k := range a.from {
		a.files[i] = a.saved[k]
	}
	return nil
}

// writeProto writes an output as a message of ONNX.
func (a *answer) writeProto(w io.Writer, info tenure.Info) error {
	switch {
	case info.Of != nil:
		return tenure.WriteValue(w, info.Of, a.out)
	case info.Text:
		return tenure.WriteStrings(w, info.Name, a.out[info.Name])
	}
	return tenure.WriteTensor(w, info.Name, a.out[info.Name])
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
