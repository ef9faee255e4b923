package suite

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
)

// table lists the models of the zoo. zoo/make.py reads it, too.
//
//go:embed zoo.txt
var table string

// Zoo lists the models of the zoo, in the folder where zoo/make.py writes them.
// Those that it has not written are among them: see [Model.Missing].
func Zoo(folder string) (list []Model) {
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			list = append(list, Model{Name: words[0], Folder: filepath.Join(folder, words[0])})
		}
	}
	return list
}

// ZooFolder is where zoo/make.py writes the zoo.
func ZooFolder() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "tenure-zoo"
	}
	return filepath.Join(cache, "tenure-zoo")
}

// Missing reports whether the model is one of the zoo that has not been made.
func (m Model) Missing() bool {
	if m.Folder == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(m.Folder, "inputs.json"))
	return err != nil
}
