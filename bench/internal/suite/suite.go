// Package suite has the models that the benchmarks run: some that it builds
// itself, and the light models of the ONNX project with weights of their own.
//
// A model is built when it is asked for, as a graph of package onnxfile. The
// package holds no memory, and everything in it may be used from any
// goroutine.
package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/contest"
	f "github.com/tenure-go/tenure/bench/internal/onnxfile"
)

// Model is a model of the tables.
type Model struct {
	Name  string
	Build func() (*f.Graph, error)
	// Becomes names the output that an input Becomes: the caller gives that
	// input up on every run.
	Becomes map[string]string
	// Folder has the files of a model of the zoo, which Build does not make.
	Folder string
}

// Models lists the models: the ones built here, then those of the light files.
func Models(folders []string) []Model {
	list := []Model{
		{Name: "mlp", Build: built(mlp)},
		{Name: "encoder", Build: built(encoder)},
		{Name: "elementwise", Build: built(elementwise)},
		{Name: "decode", Build: built(decode)},
		{Name: "scatter", Build: built(scatter)},
		{Name: "scatter-given", Build: built(scatter), Becomes: map[string]string{"cache": "next"}},
	}
	seen := map[string]bool{}
	for _, folder := range folders {
		for _, pattern := range []string{"light_*.onnx", "light_*/model.onnx"} {
			files, _ := filepath.Glob(filepath.Join(folder, pattern)) // the patterns are well formed
			slices.Sort(files)
			for _, file := range files {
				name := lightName(file)
				if !seen[name] {
					seen[name] = true
					list = append(list, Model{Name: name, Build: func() (*f.Graph, error) { return light(file) }})
				}
			}
		}
	}
	return list
}

func lightName(file string) string {
	base := filepath.Base(file)
	if base == "model.onnx" {
		base = filepath.Base(filepath.Dir(file))
	}
	return strings.TrimPrefix(strings.TrimSuffix(base, ".onnx"), "light_")
}

func light(file string) (*f.Graph, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g, err := f.Reweigh(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return g, nil
}

func built(build func() *f.Graph) func() (*f.Graph, error) {
	return func() (*f.Graph, error) { return build(), nil }
}

// LightFolders are the places where the light models may be: the optional
// data beside the module, and the onnx package that ort.py installs.
func LightFolders() []string {
	site := filepath.Join(contest.DefaultVenv(), "lib", "python3*", "site-packages", "onnx", "backend", "test", "data", "light")
	folders, _ := filepath.Glob(site) // the pattern is well formed
	shared := os.Getenv("TENURE_SHARED")
	for up := "."; shared == ""; up = filepath.Join(up, "..") {
		if _, err := os.Stat(filepath.Join(up, "ARCHITECTURE.md")); err == nil {
			shared = filepath.Join(up, "..", "shared")
		} else if len(up) > 60 {
			return folders
		}
	}
	return append([]string{filepath.Join(shared, "models")}, folders...)
}

// Choose picks models by their names, which commas separate; all when empty.
func Choose(all []Model, names string) ([]Model, error) {
	if names == "" {
		return all, nil
	}
	var chosen []Model
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(m Model) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("-models: got %q, want one of those that -list names", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
