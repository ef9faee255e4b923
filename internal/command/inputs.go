package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
	"github.com/tenure-go/tenure/tensor/picture"
)

// values are the inputs that have been read, by name.
type values map[string]tenure.Value

// given is a value from a file and the input it is for, "" while that is open.
type given struct {
	name string
	from string
	v    tenure.Value
}

// read reads the inputs from the files that the flags name; --inputs-from
// serves inputs without an --input. The caller releases the tensors, also
// after an error.
func (f *runFlags) read(m *tenure.Model, b *bound) (in values, err error) {
	in = values{}
	var open []given
	defer func() { releaseAll(open) }() // those that found no input
	stdin := false
	for _, arg := range f.inputs {
		name, path := splitInput(m, arg)
		if path == "-" && stdin {
			return in, usagef("--input: got - twice, want it once: standard input is read to its end")
		}
		stdin = stdin || path == "-"
		list, err := f.readFile(m, b, name, path, in)
		if err != nil {
			return in, err
		}
		for i, g := range list {
			if g.name == "" {
				open = append(open, g)
				continue
			}
			if err := put(m, in, g); err != nil {
				releaseAll(list[i:])
				return in, err
			}
		}
	}
	for len(open) > 0 {
		g := open[0]
		if g.name = firstOpen(m, in); g.name == "" {
			return in, fmt.Errorf("%s: every input has a value already: %w", g.from, tenure.ErrInput)
		}
		if err := put(m, in, g); err != nil {
			return in, err
		}
		open = open[1:]
	}
	if f.image.told() && !f.image.used {
		return in, usagef("--scale, --mean, --std: got no picture among the inputs, want one: they are for pixels")
	}
	if f.inputsFrom == "" {
		if err := missing(m, in); err != nil {
			return in, err
		}
		return in, b.agree(in)
	}
	for i, info := range inFile(m.Inputs()) {
		if in.has(m, info) {
			continue
		}
		v, _, err := readProto(filepath.Join(f.inputsFrom, fmt.Sprintf("input_%d.pb", i)), info)
		if err != nil {
			return in, fmt.Errorf("input %q: %w", info.Name, err)
		}
		in[info.Name] = v
	}
	return in, b.agree(in)
}

// agree wants what --shape says of the tensors that were read.
func (b *bound) agree(in values) error {
	for _, info := range b.inputs {
		sizes, ok := b.shapes[info.Name]
		if x, read := in[info.Name].(*tensor.Tensor); ok && read && !slices.Equal(x.Shape().Sizes(), sizes) {
			return fmt.Errorf("input %q: got %s%s, want sizes %v as --shape has them: %w", info.Name, x.DType(), x.Shape(), sizes, tenure.ErrShape)
		}
	}
	return nil
}

func releaseAll(list []given) {
	for _, g := range list {
		_ = g.v.Release() // it has no other holder
	}
}

// put sets an input's value; it owns the value from then on, unless it fails. A
// tensor for an input that is a sequence is its next element.
func put(m *tenure.Model, in values, g given) error {
	info, ok := inputOf(m, g.name)
	if !ok {
		return fmt.Errorf("%s: the model has no input %q, want one of %s: %w", g.from, g.name, inputNames(m), tenure.ErrInput)
	}
	x, isTensor := g.v.(*tensor.Tensor)
	if isTensor && isSequence(info) {
		list, isList := in[g.name].(tenure.Sequence)
		if isList || in[g.name] == nil {
			in[g.name] = append(list, x)
			return nil
		}
	}
	if in[g.name] != nil {
		return usagef("--input: input %q is given twice, the second time by %s", g.name, g.from)
	}
	in[g.name] = g.v
	return nil
}

func inputOf(m *tenure.Model, name string) (tenure.Info, bool) {
	list := append(inFile(m.Inputs()), m.Inputs()...)
	i := slices.IndexFunc(list, func(info tenure.Info) bool { return info.Name == name })
	if i < 0 {
		return tenure.Info{}, false
	}
	return list[i], true
}

func inputNames(m *tenure.Model) string {
	var names []string
	for _, i := range inFile(m.Inputs()) {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// splitInput splits [NAME=]FILE. A name may contain an equals sign, and so
// may a path: the part before one is a name if it is an input's, or if there
// is no file of the whole text.
func splitInput(m *tenure.Model, arg string) (name, path string) {
	for i, r := range arg {
		if r != '=' {
			continue
		}
		if _, ok := inputOf(m, arg[:i]); ok {
			return arg[:i], arg[i+1:]
		}
	}
	if name, path, ok := strings.Cut(arg, "="); ok {
		if _, err := os.Stat(arg); err != nil {
			return name, path
		}
	}
	return "", arg
}

func firstOpen(m *tenure.Model, in values) string {
	for _, info := range inFile(m.Inputs()) {
		if !in.has(m, info) {
			return info.Name
		}
	}
	return ""
}

func missing(m *tenure.Model, in values) error {
	var without []string
	for _, info := range inFile(m.Inputs()) {
		if !in.has(m, info) {
			without = append(without, info.String())
		}
	}
	if len(without) == 0 {
		return nil
	}
	return hintError{fmt.Errorf("%d of %d inputs have no value, give each with --input NAME=FILE: %w", len(without), len(inFile(m.Inputs())), tenure.ErrInput), without}
}

// readFile reads the tensors of one file. in holds the inputs that have a
// value, for a picture without a name.
func (f *runFlags) readFile(m *tenure.Model, b *bound, name, path string, in values) ([]given, error) {
	one := func(v tenure.Value, err error) ([]given, error) {
		if err != nil {
			return nil, err // with the file's name
		}
		return []given{{name, path, v}}, nil
	}
	if path == "" {
		return nil, usagef("--input: got no file, want [NAME=]FILE")
	}
	if _, ok := inputOf(m, name); name != "" && !ok {
		return nil, fmt.Errorf("%s: the model has no input %q, want one of %s: %w", path, name, inputNames(m), tenure.ErrInput)
	}
	if path == "-" {
		t, err := npy.Read(f.stdin)
		if err != nil {
			err = fmt.Errorf("standard input: %w", err)
		}
		return one(t, err)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy":
		t, err := npy.ReadFile(path)
		return one(t, wrongFile(path, "an .npy array", []string{"an .npy array"}, err))
	case ".npz":
		return readArchive(name, path)
	case ".pb":
		target, known := inputOf(m, name)
		if !known {
			target, _ = inputOf(m, firstOpen(m, in))
		}
		v, own, err := readProto(path, target)
		if _, ok := inputOf(m, own); ok && name == "" {
			name = own
		}
		return one(v, err)
	case ".png", ".jpg", ".jpeg":
		target := name
		if target == "" {
			target = firstOpen(m, in)
		}
		info, ok := inputOf(m, target)
		if !ok || info.Of != nil {
			return nil, fmt.Errorf("%s: there is no input for the picture: %w", path, tenure.ErrInput)
		}
		name = target
		var err error
		declared := info.Shape
		if info.Shape, err = b.shapeOf(info); err != nil {
			return nil, err
		}
		t, err := f.image.read(path, info, declared)
		if opening := new(fs.PathError); err != nil && !errors.As(err, &opening) {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if errors.Is(err, picture.ErrFormat) {
			err = wrongFile(path, "a PNG or JPEG picture", []string{"a PNG picture", "a JPEG picture"}, err)
		}
		return one(t, err)
	default:
		return nil, usagef("%s: got a file whose name ends in %q, want .npy, .npz, .pb, .png or .jpg, or - for an .npy from standard input", path, ext)
	}
}

// readArchive reads an .npz: the array of that name, or all under their own.
func readArchive(name, path string) ([]given, error) {
	entries, err := npy.ReadArchive(path)
	if err != nil {
		return nil, wrongFile(path, "an .npz archive of arrays", []string{"an .npz archive of arrays", "a ZIP archive"}, err) // with the file's name
	}
	var list []given
	var names []string
	for _, e := range entries {
		list, names = append(list, given{e.Name, path, e.Tensor}), append(names, e.Name)
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
		return nil, fmt.Errorf("%s: got arrays %s, want %q or a single one: %w", path, strings.Join(names, ", "), name, tenure.ErrInput)
	}
	releaseAll(slices.Delete(slices.Clone(list), i, i+1))
	return list[i : i+1], nil
}
