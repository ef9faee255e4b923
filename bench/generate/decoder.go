package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/onnxfile"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

// decoder is a model of the table.
type decoder struct {
	name    string
	sizes   suite.Decoder // those of the caches, at least
	file    bool          // it is in a file of the optional test data
	tokens  int           // per text, unless the caller says how many
	pasts   []int         // those that the caller says, where it is nil
	operand func(past, tokens int) []engine.Input
}

var decoders = []*decoder{
	{name: "gpt2_tiny", file: true, tokens: 50, pasts: []int{7},
		sizes: suite.Decoder{Layers: 3, Width: 96, Heads: 4, Groups: 4, Positions: 64},
		operand: func(past, tokens int) []engine.Input {
			return []engine.Input{ints("input_ids", 1, tokens), ints("attention_mask", 1, past+tokens)}
		}},
	{name: "decoder6", tokens: 16,
		sizes: suite.Decoder{Layers: 6, Width: 1024, Heads: 16, Groups: 4, Inner: 4096, Vocabulary: 512, Positions: 2048},
		operand: func(past, tokens int) []engine.Input {
			return []engine.Input{ints("input_ids", 1, tokens), ints("position_ids", 1, tokens)}
		}},
}

func ints(name string, dims ...int) engine.Input {
	return engine.Input{Name: name, Type: "i64", Dims: dims}
}

// text returns the inputs of the runs of a text: one token after as many cached
// ones, and as many tokens more, whose caches are outputs of the run before.
func (d *decoder) text(folder string, past, tokens int) [][]engine.Input {
	var sets [][]engine.Input
	for n := range tokens + 1 {
		sets = append(sets, d.operand(past+n, 1))
	}
	for layer := range d.sizes.Layers {
		for _, part := range []string{"key", "value"} {
			sets[0] = append(sets[0], engine.Input{Name: fmt.Sprintf("past_key_values.%d.%s", layer, part), Type: "f32",
				Dims: []int{1, d.sizes.Groups, past, d.sizes.Size()}, Becomes: fmt.Sprintf("present.%d.%s", layer, part)})
		}
	}
	for _, set := range sets {
		for i := range set {
			set[i].File = filepath.Join(folder, set[i].Type)
		}
	}
	return sets
}

// write writes the model into a folder, or finds it in one of those of the
// optional test data. It returns its file.
func (d *decoder) write(folder string) (string, error) {
	if !d.file {
		file, err := os.Create(filepath.Join(folder, d.name+".onnx"))
		if err != nil {
			return "", err
		}
		if _, err := d.sizes.Graph().WriteTo(file); err != nil {
			return "", err
		}
		return file.Name(), file.Close()
	}
	folders := suite.LightFolders()
	i := slices.IndexFunc(folders, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, d.name, "model.onnx"))
		return err == nil
	})
	if i < 0 {
		return "", fmt.Errorf("%s: got no model.onnx in a folder of that name in %q, want one", d.name, folders)
	}
	return filepath.Join(folders[i], d.name, "model.onnx"), nil
}

// writeData writes the files from which inputs are read, one per element type:
// floats between -1 and 1, and integers that are 1, a token, a position and a
// mask of the models.
func writeData(folder string) error {
	const elements = 1 << 19 // at least as many as any input has
	values := make([]float32, elements)
	onnxfile.Uniform(1, 1)()(values)
	var floats, ones []byte
	for _, v := range values {
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(v))
		ones = binary.LittleEndian.AppendUint64(ones, 1)
	}
	if err := os.WriteFile(filepath.Join(folder, "f32"), floats, 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "i64"), ones, 0o666)
}
