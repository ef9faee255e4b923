package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/onnx"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
)

// given is a tensor from a file and the input it is for, "" while that is
// open.
type given struct {
	name string
	from string
	t    *tensor.Tensor
}

// read reads the inputs from the files that the flags name. The caller
// releases what it returns, also with an error.
func (f *runFlags) read(m *tenure.Model) (in map[string]*tensor.Tensor, err error) {
	in = map[string]*tensor.Tensor{}
	if f.inputsFrom != "" {
		for i, info := range m.Inputs() {
			x, _, err := onnx.ReadTensorFile(filepath.Join(f.inputsFrom, fmt.Sprintf("input_%d.pb", i)))
			if err != nil {
				return in, fmt.Errorf("input %q: %w", info.Name, err)
			}
			in[info.Name] = x
		}
	}
	var open []given
	for _, arg := range f.inputs {
		name, path := splitInput(m, arg)
		list, err := f.readFile(m, name, path, in)
		if err != nil {
			releaseAll(append(open, list...))
			return in, err
		}
		for _, g := range list {
			if g.name == "" {
				open = append(open, g)
				continue
			}
			if err := put(m, in, g); err != nil {
				releaseAll(open)
				return in, err
			}
		}
	}
	for i, g := range open {
		if g.name = firstOpen(m, in); g.name == "" {
			releaseAll(open[i:])
			return in, fmt.Errorf("%s: every input has a value already: %w", g.from, tenure.ErrInput)
		}
		in[g.name] = g.t
	}
	return in, missing(m, in)
}

func releaseAll(list []given) {
	for _, g := range list {
		_ = g.t.Release() // held by nobody else
	}
}

// put gives an input its value; it owns the tensor from then on.
func put(m *tenure.Model, in map[string]*tensor.Tensor, g given) error {
	if !slices.ContainsFunc(m.Inputs(), func(i tenure.Info) bool { return i.Name == g.name }) {
		return errors.Join(fmt.Errorf("%s: the model has no input %q, want one of %s: %w", g.from, g.name, inputNames(m), tenure.ErrInput), g.t.Release())
	}
	if in[g.name] != nil {
		_ = in[g.name].Release() // an --input replaces that of --inputs-from
	}
	in[g.name] = g.t
	return nil
}

func inputNames(m *tenure.Model) string {
	var names []string
	for _, i := range m.Inputs() {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// splitInput splits [NAME=]FILE. A name may hold an equals sign, and so may a
// path: what stands before one counts as a name only if it is an input's.
func splitInput(m *tenure.Model, arg string) (name, path string) {
	for i, r := range arg {
		if r != '=' {
			continue
		}
		for _, info := range m.Inputs() {
			if info.Name == arg[:i] {
				return arg[:i], arg[i+1:]
			}
		}
	}
	if name, path, ok := strings.Cut(arg, "="); ok && !strings.ContainsAny(name, `/\.`) {
		return name, path // no input: the error says so
	}
	return "", arg
}

func firstOpen(m *tenure.Model, in map[string]*tensor.Tensor) string {
	for _, info := range m.Inputs() {
		if in[info.Name] == nil {
			return info.Name
		}
	}
	return ""
}

func missing(m *tenure.Model, in map[string]*tensor.Tensor) error {
	var lacking []string
	for _, info := range m.Inputs() {
		if in[info.Name] == nil {
			lacking = append(lacking, info.String())
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	return fmt.Errorf("give these inputs with --input NAME=FILE: %s: %w", strings.Join(lacking, ", "), tenure.ErrInput)
}

// readFile reads the tensors of one file. in holds the inputs that have a
// value, for a picture without a name.
func (f *runFlags) readFile(m *tenure.Model, name, path string, in map[string]*tensor.Tensor) ([]given, error) {
	one := func(t *tensor.Tensor, err error) ([]given, error) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return []given{{name, path, t}}, nil
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy":
		return one(npy.ReadFile(path))
	case ".npz":
		return readArchive(name, path)
	case ".pb":
		t, own, err := onnx.ReadTensorFile(path)
		if err == nil && name == "" && slices.ContainsFunc(m.Inputs(), func(i tenure.Info) bool { return i.Name == own }) {
			name = own
		}
		return one(t, err)
	case ".png", ".jpg", ".jpeg":
		target := name
		if target == "" {
			target = firstOpen(m, in)
		}
		for _, info := range m.Inputs() {
			if info.Name == target {
				name = target
				return one(f.image.read(path, info))
			}
		}
		return nil, fmt.Errorf("%s: there is no input for the picture: %w", path, tenure.ErrInput)
	default:
		return nil, usagef("%s: got a file of type %q, want .npy, .npz, .pb, .png or .jpg", path, ext)
	}
}

// readArchive reads an .npz: the array of that name, or all under their own.
func readArchive(name, path string) ([]given, error) {
	entries, err := npy.ReadArchive(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var list []given
	for _, e := range entries {
		list = append(list, given{e.Name, path, e.Tensor})
	}
	if name == "" {
		return list, nil
	}
	i := slices.IndexFunc(list, func(g given) bool { return g.name == name })
	if i < 0 && len(list) == 1 {
		list[0].name = name
		return list, nil
	}
	if i < 0 {
		releaseAll(list)
		return nil, fmt.Errorf("%s: it holds no array %q: %w", path, name, tenure.ErrInput)
	}
	releaseAll(slices.Delete(slices.Clone(list), i, i+1))
	return list[i : i+1], nil
}
