package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// writeFixtures puts the binary files of the scripts into their folder.
func writeFixtures(dir string) error {
	ones := make([]float32, 64)
	for i := range ones {
		ones[i] = 1
	}
	tensors, err := makeTensors(
		func() (*tensor.Tensor, error) { return tensor.Of(ones, 1, 64) },
		func() (*tensor.Tensor, error) { return tensor.Of(make([]float32, 64), 1, 64) },
		func() (*tensor.Tensor, error) { return tensor.Of(make([]float64, 64), 1, 64) },
		func() (*tensor.Tensor, error) {
			return tensor.Of([]float32{-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 2, 3, 2)
		},
		func() (*tensor.Tensor, error) { return tensor.Of([]int64{1<<60 + 1, -1}, 2) },
		func() (*tensor.Tensor, error) { return tensor.Of([]float32{0, 1, 2, 3, 4, 5}, 6) },
		func() (*tensor.Tensor, error) { return tensor.Of([]int64{2, 3}, 2) },
		func() (*tensor.Tensor, error) { return tensor.OfStrings([]string{"Hello", "the", "Größe"}, 3) },
		func() (*tensor.Tensor, error) { return tensor.Of(make([]float32, 256), 4, 1, 8, 8) },
		func() (*tensor.Tensor, error) { return tensor.Of([]int64{7, 6}, 2) },
		func() (*tensor.Tensor, error) { return tensor.Of([]float32{0.5, 9}, 2) },
	)
	if err != nil {
		return err
	}
	defer func() {
		for _, x := range tensors {
			_ = x.Release() // it has no other holder
		}
	}()
	one, zero, double, cube, large, six, sizes := tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], tensors[5], tensors[6]
	array := func(x *tensor.Tensor) func(io.Writer) error {
		return func(w io.Writer) error { return npy.Write(w, x) }
	}
	archive := func(entries ...npy.Entry) func(io.Writer) error {
		return func(w io.Writer) error { return npy.WriteArchive(w, entries...) }
	}
	var errs []error
	for name, write := range map[string]func(io.Writer) error{
		"x.npy":     array(one),
		"six.npy":   array(six),
		"f64.npy":   array(double),
		"cube.npy":  array(cube),
		"large.npy": array(large),
		"four.npy":  array(tensors[8]),
		"scaled.safetensors": func(w io.Writer) error {
			return safetensors.Write(w, nil, safetensors.Entry{Name: "layers/0.w", Tensor: six})
		},
		"pair.npz":    archive(npy.Entry{Name: "first", Tensor: one}, npy.Entry{Name: "second", Tensor: zero}),
		"reshape.npz": archive(npy.Entry{Name: "sizes", Tensor: sizes}, npy.Entry{Name: "x", Tensor: six}),
		"words.npy":   func(w io.Writer) error { return npy.WriteStrings(w, tensors[7]) },
		"words.pb":    func(w io.Writer) error { return tenure.WriteStrings(w, "words", tensors[7]) },
		"zero.pb":     func(w io.Writer) error { return tenure.WriteTensor(w, "state", zero) },
		"clear.png":   func(w io.Writer) error { return png.Encode(w, image.NewNRGBA(image.Rect(0, 0, 2, 2))) },
		"deep.png":    deepPicture,
		"huge.png":    hugePicture,
		"cut.png":     cutPicture,
		"escape.onnx": writeModel([]testNode{{"Neg", []string{"x\x1b[31m"}, []string{"y\x1b[31m"}, 0}},
			[]port{{"x\x1b[31m", elemF32, []any{1}}}, []port{{"y\x1b[31m", elemF32, []any{1}}}),
		"decoder.onnx": decoder,
		"lists.onnx": textModel(`
			opset 18
			opset "ai.onnx.ml" 3
			input s sequence(f32[n])
			input o optional(f32[n])
			input m map(i64, f32)
			t = SequenceErase(s)
			fixed = SequenceConstruct(v, v)
			p = Identity(o)
			v = "ai.onnx.ml"::DictVectorizer(m) {int64_vocabulary = [5, 7]}
			classes = "ai.onnx.ml"::ZipMap(v) {classlabels_strings = ["cat", "dog"]}
			output t sequence(f32[n])
			output fixed sequence(f32[1,2])
			output p optional(f32[n])
			output classes sequence(map(string, f32))`),
		"wrong.pb": func(w io.Writer) error { return tenure.WriteTensor(w, "s", sizes) },
		"map.pb": func(w io.Writer) error {
			m := tenure.Outputs{"m.keys": tensors[9], "m.values": tensors[10]}
			return tenure.WriteValue(w, &tenure.Composite{Name: "m", Kind: tenure.KindMap}, m)
		},
		"loose.onnx": loose,
		"u8.onnx":    castModel(elemU8, 1, 1, 1, 1),
		"sizes.onnx": writeModel([]testNode{{"Neg", []string{"n"}, []string{"a"}, 0}, {"Neg", []string{"m"}, []string{"b"}, 0}},
			[]port{{"n", elemF32, []any{"n"}}, {"m", elemF32, []any{"n", 2}}}, []port{{"a", elemF32, []any{"n"}}, {"b", elemF32, []any{"n", 2}}}),
	} {
		errs = append(errs, wholefile.Write(filepath.Join(dir, name), write))
	}
	return errors.Join(errs...)
}

// textModel writes the model that a text describes.
func textModel(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(wiretest.ModelText(&testing.T{}, text))
		return err
	}
}

func makeTensors(makers ...func() (*tensor.Tensor, error)) ([]*tensor.Tensor, error) {
	var all []*tensor.Tensor
	for _, f := range makers {
		x, err := f()
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// deepPicture writes one pixel of 16 bits, half bright.
func deepPicture(w io.Writer) error {
	img := image.NewGray16(image.Rect(0, 0, 1, 1))
	img.SetGray16(0, 0, color.Gray16{Y: 0x8000})
	return png.Encode(w, img)
}

// hugePicture writes a small file whose header claims two million pixels a
// side.
func hugePicture(w io.Writer) error {
	var b bytes.Buffer
	if err := deepPicture(&b); err != nil {
		return err
	}
	data := b.Bytes()
	binary.BigEndian.PutUint32(data[16:], 2_000_000)
	binary.BigEndian.PutUint32(data[20:], 2_000_000)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	_, err := w.Write(data)
	return err
}

// cutPicture writes the beginning of a picture.
func cutPicture(w io.Writer) error {
	var b bytes.Buffer
	if err := deepPicture(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes()[:b.Len()-20])
	return err
}
