package tenure_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func ExampleDescribe() {
	d := must(tenure.Describe("examples/digits/digits.onnx"))
	fmt.Println(d.Inputs[0], d.Outputs[0], d.Operators["Conv"], d.Opsets[""])
	// Output: image: f32[batch,1,8,8] probabilities: f32[batch,10] 2 17
}

func TestDescribeFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text.onnx")
	if err := os.WriteFile(path, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tenure.Describe(path); !errors.Is(err, tenure.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	if list := tenure.Unsupported(tenure.ErrCorrupt); list != nil {
		t.Errorf("got %q of another error, want nil", list)
	}
	if list := tenure.Unsupported(nil); list != nil {
		t.Errorf("got %q of no error, want nil", list)
	}
}

func TestEachWeight(t *testing.T) {
	memorytest.Check(t)
	d, err := tenure.Describe("examples/digits/digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var size int64
	err = tenure.EachWeight("examples/digits/digits.onnx", func(name string, x *tensor.Tensor) error {
		if name == "" {
			t.Error("got a weight without a name")
		}
		n++
		size += int64(x.NumBytes())
		return nil
	})
	if err != nil || n != d.Weights || size != d.WeightBytes {
		t.Errorf("got %d weights of %d bytes, %v, want %d of %d", n, size, err, d.Weights, d.WeightBytes)
	}
	n, stop := 0, errors.New("enough")
	err = tenure.EachWeight("examples/digits/digits.onnx", func(string, *tensor.Tensor) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("got %d calls and %v, want one and its error", n, err)
	}
	if err := tenure.EachWeight("nowhere.onnx", func(string, *tensor.Tensor) error { return nil }); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

func TestTensorFiles(t *testing.T) {
	memorytest.Check(t)
	path := filepath.Join(t.TempDir(), "x.pb")
	for name, write := range map[string]func(b *bytes.Buffer) error{
		"numbers": func(b *bytes.Buffer) error {
			x, err := tensor.Of([]float32{1, 2, 3}, 3)
			if err != nil {
				return err
			}
			return errors.Join(tenure.WriteTensor(b, "numbers", x), x.Release())
		},
		"text": func(b *bytes.Buffer) error {
			x, err := tensor.OfStrings([]string{"a", "bc"}, 2)
			if err != nil {
				return err
			}
			return errors.Join(tenure.WriteStrings(b, "text", x), x.Release())
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		x, got, err := tenure.ReadTensor(path)
		if err != nil || got != name {
			t.Fatalf("got %q, %v, want %q", got, err, name)
		}
		if name == "text" {
			if s, err := tensor.Strings(x); err != nil || len(s) != 2 || s[1] != "bc" {
				t.Errorf("got %q, %v", s, err)
			}
		} else if v, err := tensor.Values[float32](x); err != nil || len(v) != 3 || v[2] != 3 {
			t.Errorf("got %v, %v", v, err)
		}
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(path, []byte("<!DOCTYPE html><html></html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tenure.ReadTensor(path); !errors.Is(err, tenure.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}
