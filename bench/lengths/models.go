package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

// length is what varies over a sweep: a number of tokens, or the height and the
// width of a picture.
type length [2]int

// sweep is a model with the lengths at which it runs.
type sweep struct {
	name    string
	file    func() *onnxfile.Graph // nil: the model of the optional test data that has the name up to the first comma
	inputs  func(n length) []engine.Input
	base    length // its runs stand between the others
	lengths []length
}

// folder is the name of the model in the optional test data.
func (s sweep) folder() string {
	name, _, _ := strings.Cut(s.name, ",")
	return name
}

func tokens(list ...int) (all []length) {
	for _, n := range list {
		all = append(all, length{n})
	}
	return all
}

var (
	sequences = tokens(67, 12, 96, 33, 120, 21, 50, 83, 8, 108)
	shorter   = tokens(47, 12, 61, 33, 55, 21, 50, 28, 8, 58) // the tiny models have 64 positions
	pictures  = []length{{160, 96}, {224, 224}, {96, 128}, {192, 160}, {128, 128}, {256, 192}, {96, 224}, {160, 160}, {192, 256}, {128, 192}}
	small     = []length{{64, 96}, {96, 96}, {32, 128}, {80, 64}, {48, 48}, {112, 64}, {32, 64}, {96, 48}, {64, 128}, {80, 112}}
)

// sweeps are the models of the table.
var sweeps = []sweep{
	{name: "bert_tiny", base: length{40}, lengths: shorter, inputs: func(n length) []engine.Input {
		return []engine.Input{i64("input_ids", 1, n[0]), i64("attention_mask", 1, n[0]), i64("token_type_ids", 1, n[0])}
	}},
	{name: "gpt2_tiny, past", base: length{40}, lengths: shorter, inputs: func(n length) []engine.Input { return decoder(n[0], 1) }},
	{name: "gpt2_tiny, tokens", base: length{40}, lengths: shorter, inputs: func(n length) []engine.Input { return decoder(0, n[0]) }},
	{name: "encoder", file: suite.OpenEncoder, base: length{64}, lengths: sequences, inputs: func(n length) []engine.Input {
		return []engine.Input{f32("x", 1, n[0], 384)}
	}},
	{name: "resnet50", file: suite.OpenResNet50, base: length{128, 160}, lengths: pictures, inputs: func(n length) []engine.Input {
		return []engine.Input{f32("x", 1, 3, n[0], n[1])}
	}},
	{name: "unet_tiny", base: length{64, 64}, lengths: small, inputs: func(n length) []engine.Input {
		return []engine.Input{f32("image", 1, 3, n[0], n[1])}
	}},
}

// deep is the program of which planning is timed.
var deep = sweep{name: "deep encoder", file: suite.OpenDeep, base: length{64}, lengths: sequences, inputs: func(n length) []engine.Input {
	return []engine.Input{f32("x", n[0], 32)}
}}

func i64(name string, dims ...int) engine.Input {
	return engine.Input{Name: name, Type: "i64", Dims: dims}
}

func f32(name string, dims ...int) engine.Input {
	return engine.Input{Name: name, Type: "f32", Dims: dims}
}

// layers is how many gpt2_tiny has.
const layers = 3

// decoder returns the inputs of gpt2_tiny for new tokens after cached ones.
func decoder(past, tokens int) []engine.Input {
	list := []engine.Input{i64("input_ids", 1, tokens), i64("attention_mask", 1, past+tokens)}
	for layer := range layers {
		for _, part := range []string{"key", "value"} {
			cache := f32(fmt.Sprintf("past_key_values.%d.%s", layer, part), 1, 4, past, 24)
			cache.Becomes = fmt.Sprintf("present.%d.%s", layer, part)
			list = append(list, cache)
		}
	}
	return list
}

// growing returns the inputs of a prompt for gpt2_tiny and of so many steps
// after it, whose caches are the outputs of the step before.
func growing(prompt, steps int) [][]engine.Input {
	sets := [][]engine.Input{decoder(0, prompt)}
	for n := range steps {
		sets = append(sets, decoder(prompt+n, 1)[:2])
	}
	return sets
}

// data are the files from which inputs are read, one per element type.
type data struct{ folder string }

// elements is more than any input has.
const elements = 1 << 19

// newData writes the files: floats between -1 and 1, and integers that are 1, a
// token, a type and a mask of the models.
func newData(folder string) (data, error) {
	values := make([]float32, elements)
	onnxfile.Uniform(1, 1)()(values)
	var floats, ints []byte
	for _, v := range values {
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(v))
		ints = binary.LittleEndian.AppendUint64(ints, 1)
	}
	d := data{folder}
	if err := os.WriteFile(d.file("f32"), floats, 0o666); err != nil {
		return d, err
	}
	return d, os.WriteFile(d.file("i64"), ints, 0o666)
}

func (d data) file(typ string) string { return filepath.Join(d.folder, typ) }

// in sets the files of inputs.
func (d data) in(inputs []engine.Input) []engine.Input {
	for i := range inputs {
		inputs[i].File = d.file(inputs[i].Type)
	}
	return inputs
}

// write writes the model into a folder, or finds it in one of those of the
// optional test data. It returns its file.
func (s sweep) write(folder string) (string, error) {
	if s.file == nil {
		for _, dir := range suite.LightFolders() {
			file := filepath.Join(dir, s.folder(), "model.onnx")
			if _, err := os.Stat(file); err == nil {
				return file, nil
			}
		}
		return "", fmt.Errorf("%s: got no model.onnx in a folder %s of %q, want one", s.name, s.folder(), suite.LightFolders())
	}
	file, err := os.Create(filepath.Join(folder, strings.ReplaceAll(s.name, " ", "-")+".onnx"))
	if err != nil {
		return "", err
	}
	if _, err := s.file().WriteTo(file); err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}
