package filekind

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
)

func zipOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func utf16Text(order binary.AppendByteOrder, mark bool, s string) (out []byte) {
	units := utf16.Encode([]rune(s))
	if mark {
		units = append([]uint16{0xfeff}, units...)
	}
	for _, u := range units {
		out = order.AppendUint16(out, u)
	}
	return out
}

func TestOf(t *testing.T) {
	const page = "\n<!DOCTYPE html>\n<html><head><title>404</title></head></html>"
	tar := append(make([]byte, 257), "ustar\x0000"...)
	tar[0] = 'm'
	whole := zipOf(t, "archive/data.pkl")
	for _, tc := range []struct{ name, data, want string }{
		{"pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102400\n", "a Git LFS pointer to a file of 102400 bytes"},
		{"old pointer", "version https://hawser.github.com/spec/v1\n", "a Git LFS pointer"},
		{"a long text about pointers", "version https://git-lfs.github.com/spec/v1\n" + strings.Repeat("x", 2000), "a text"},
		{"empty", "", "an empty file"},
		{"page", page, "an HTML page"},
		{"page with a mark", "\ufeff<HTML lang=en>", "an HTML page"},
		{"error of a store", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "an XML text"},
		{"openvino", "<?xml version=\"1.0\"?>\n<net name=\"x\" version=\"11\">", "an OpenVINO model"},
		{"json", ` {"error": "not found"}`, "a JSON text"},
		{"text proto", "ir_version: 8\nproducer_name: \"x\"", "an ONNX model in the text form of protocol buffers"},
		{"text", "Grüße", "a text"},
		{"text cut in a rune", strings.Repeat("x", 4095) + "ü", "a text"},
		{"blanks", " \n\n", "a file of blanks"},
		{"zeros", strings.Repeat("\x00", 100), "a file of zeros"},
		{"utf-16 with a mark", string(utf16Text(binary.LittleEndian, true, "a")), "text in UTF-16"},
		{"utf-16 big", string(utf16Text(binary.BigEndian, true, "a")), "text in UTF-16"},
		{"utf-16 without a mark", string(utf16Text(binary.LittleEndian, false, "hello, world")), "text in UTF-16"},
		{"utf-16 big without a mark", string(utf16Text(binary.BigEndian, false, "hello, world")), "text in UTF-16"},
		{"zip", string(zipOf(t, "readme", "a/m.onnx", "n.onnx")), `a ZIP archive that holds "a/m.onnx"`},
		{"plain zip", string(zipOf(t, "readme")), "a ZIP archive"},
		{"empty zip", string(zipOf(t)), "a ZIP archive"},
		{"cut zip", string(whole[:len(whole)/2]), "a ZIP archive that is damaged or cut off"},
		{"checkpoint", string(whole), "a PyTorch checkpoint"},
		{"keras", string(zipOf(t, "config.json", "model.weights.h5")), "a Keras model"},
		{"npz", string(zipOf(t, "x.npy")), "an .npz archive of arrays"},
		{"pickle", "\x80\x04}\x94.", "a Python pickle, such as a PyTorch checkpoint"},
		{"gzip", "\x1f\x8b\x08\x00", "a gzip archive"},
		{"tar", string(tar), "a tar archive"},
		{"tflite", "\x1c\x00\x00\x00TFL3\x00", "a TensorFlow Lite model"},
		{"safetensors", "\x0c\x00\x00\x00\x00\x00\x00\x00{\"a\": 1}    ", "a safetensors file, which holds weights and no graph"},
		{"hdf5", "\x89HDF\r\n\x1a\n\x00", "an HDF5 file, such as a Keras model"},
		{"png", "\x89PNG\r\n\x1a\n\x00", "a PNG picture"},
		{"a few bytes", "\x08\x01\x02", "a file of an unknown kind"},
		{"a model", "\x08\x08\x12\x07pytorch\x3a\x02", "a file of an unknown kind"},
	} {
		if got := Of([]byte(tc.data)); got.String() != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestGot(t *testing.T) {
	for _, tc := range []struct{ data, want string }{
		{"\x08\x01", ""},
		{"{}", "got a JSON text, want an ONNX model"},
		{"\x1f\x8b\x08", "got a gzip archive, want an ONNX model: unpack it first"},
	} {
		if got := Of([]byte(tc.data)).Got("an ONNX model"); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.data, got, tc.want)
		}
	}
}

// FuzzOf wants an answer for any bytes.
func FuzzOf(f *testing.F) {
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("\x80\x02"))
	f.Fuzz(func(_ *testing.T, data []byte) { _ = Of(data).Got("x") })
}
