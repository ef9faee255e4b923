package serve

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// source is where a model's files are.
type source struct {
	name     string
	versions map[int]string // files by version
	config   string         // the file of the configuration, "" without one
}

// configFiles are the names of a model's configuration in its folder: in JSON,
// and in the text form of Triton.
var configFiles = []string{"config.json", "config.pbtxt"}

// find lists the models below the paths. Folders that are changed meanwhile
// are read as they are at some moment.
func find(paths []string) (map[string]*source, error) {
	all := map[string]*source{}
	add := func(s *source, path string) error {
		if err := checkName(s.name); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if all[s.name] != nil {
			return fmt.Errorf("%s: got a second model of the name %q, want one (NAME=FILE gives a file another name): %w", path, s.name, ErrConfig)
		}
		all[s.name] = s
		return nil
	}
	for _, path := range paths {
		name, file, named := strings.Cut(path, "=")
		if !named {
			name, file = "", path
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			if err := add(&source{name: or(name, modelName(file)), versions: map[int]string{1: file}}, path); err != nil {
				return nil, err
			}
			continue
		}
		one, err := folder(file, "")
		if err != nil {
			return nil, err
		}
		if one != nil && (named || !one.bare) {
			one.name = or(name, one.name)
			if err := add(&one.source, path); err != nil {
				return nil, err
			}
			continue
		}
		if named {
			return nil, fmt.Errorf("%s: got no model in the folder, want one: %w", path, ErrConfig)
		}
		list, err := repository(file)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			if err := add(s, path); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// modelName is the name of a bare file: its own, or that of its folder where it
// is called model.onnx.
func modelName(file string) string {
	base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if base != "model" {
		return base
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil || filepath.Dir(dir) == dir {
		return base
	}
	return filepath.Base(dir)
}

// checkName refuses names that are no single element of a path, or that a
// request could not name.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\\") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("got the model name %q, want one without slashes and control characters: %w", name, ErrConfig)
	}
	return nil
}

// found is the model of a folder. A bare one has its file beside others.
type found struct {
	source
	bare bool
}

// folder reads the folder of one model: numbered folders with a file each, or a
// file. It returns nil for a folder without a model and a configuration.
// fileName is that of the model's files, "" for model.onnx or the only one.
func folder(dir, fileName string) (*found, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	f := &found{source: source{name: filepath.Base(abs), versions: map[int]string{}}}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if slices.Contains(configFiles, e.Name()) && !isTrainingConfig(path) {
			if f.config != "" {
				return nil, fmt.Errorf("%s: got %s, too, want one of them: %w", path, filepath.Base(f.config), ErrConfig)
			}
			f.config = path
		}
		version, err := strconv.Atoi(e.Name())
		if err != nil || version < 0 || strconv.Itoa(version) != e.Name() || !isDir(path) {
			continue
		}
		file, err := modelFile(path, fileName)
		if err != nil {
			return nil, err
		}
		if file != "" {
			f.versions[version] = file
		}
	}
	if len(f.versions) > 0 {
		return f, nil
	}
	file, err := modelFile(dir, fileName)
	if err != nil {
		return nil, err
	}
	if file == "" {
		if f.config == "" {
			return nil, nil
		}
		return f, nil // its configuration may name the file, or there is none yet
	}
	f.versions[1], f.bare = file, f.config == "" && filepath.Base(file) != "model.onnx"
	return f, nil
}

// modelFile returns the file of a model in a folder, "" if there is none.
func modelFile(dir, name string) (string, error) {
	if name != "" {
		if filepath.Base(name) != name {
			return "", fmt.Errorf("default_model_filename: got %q, want a name without a folder: %w", name, ErrConfig)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", nil
		}
		return filepath.Join(dir, name), nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var list []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !strings.EqualFold(filepath.Ext(path), ".onnx") || isDir(path) {
			continue
		}
		if e.Name() == "model.onnx" {
			return path, nil
		}
		list = append(list, path)
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return "", nil
}

func isDir(path string) bool {
	info, err := os.Stat(path) // of what a link names, too
	return err == nil && info.IsDir()
}

// repository lists the models of a folder of models.
func repository(dir string) ([]*source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []*source
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case isDir(path):
			f, err := folder(path, "")
			if err != nil {
				return nil, err
			}
			if f != nil && (len(f.versions) > 0 || f.config != "") {
				list = append(list, &f.source)
			}
		case strings.EqualFold(filepath.Ext(path), ".onnx"):
			list = append(list, &source{name: modelName(path), versions: map[int]string{1: path}})
		}
	}
	return list, nil
}

// read returns the configuration of the model, an empty one without a file.
func (s *source) read() (*ModelConfig, error) {
	if s.config == "" {
		return &ModelConfig{}, nil
	}
	text, err := os.ReadFile(s.config)
	if err != nil {
		return nil, err
	}
	if filepath.Ext(s.config) == ".pbtxt" {
		text, err = jsonOfProtoText(text)
	}
	var c *ModelConfig
	if err == nil {
		c, err = parseModelConfig(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.config, err)
	}
	if c.DefaultModelFile != "" {
		f, err := folder(filepath.Dir(s.config), c.DefaultModelFile)
		if err != nil {
			return nil, err
		}
		s.versions = map[int]string{}
		if f != nil {
			s.versions = f.versions
		}
	}
	return c, nil
}

// chosen returns the versions that the policy names, in rising order.
func (s *source) chosen(p *VersionPolicy) ([]int, error) {
	all := slices.Sorted(maps.Keys(s.versions))
	latest := 1
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("model %q: got no version with a model file: %w", s.name, fs.ErrNotExist)
	case p == nil:
	case p.All != nil:
		return all, nil
	case p.Specific != nil:
		for _, v := range p.Specific.Versions {
			if s.versions[v] == "" {
				return nil, fmt.Errorf("model %q: version_policy: got version %d, want one of %v: %w", s.name, v, all, ErrConfig)
			}
		}
		list := slices.Compact(slices.Sorted(slices.Values(p.Specific.Versions)))
		if len(list) == 0 {
			return nil, fmt.Errorf("model %q: version_policy: got no versions: %w", s.name, ErrConfig)
		}
		return list, nil
	case p.Latest != nil:
		if latest = p.Latest.NumVersions; latest < 1 {
			return nil, fmt.Errorf("model %q: version_policy: got the latest %d, want 1 or more: %w", s.name, latest, ErrConfig)
		}
	}
	return all[max(0, len(all)-latest):], nil
}
