// Package filekind identifies a file of an unexpected kind: a Git LFS
// pointer, a page of HTML, an archive, a model of another framework. It is
// used after a reader has failed, so a wrong guess can only make an error
// less clear.
package filekind

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Kind is the format of a file, as its contents indicate.
type Kind struct {
	Name   string // "an HTML page"; "" where nothing is known
	Advice string // what to do about it, "" for nothing
}

// String returns the name, or "a file of an unknown kind".
func (k Kind) String() string {
	if k.Name == "" {
		return "a file of an unknown kind"
	}
	return k.Name
}

// Got returns the words of an error: "got an HTML page, want an ONNX model:
// ..."; "" where nothing is known.
func (k Kind) Got(want string) string {
	if k.Name == "" {
		return ""
	}
	text := fmt.Sprintf("got %s, want %s", k.Name, want)
	if k.Advice != "" {
		text += ": " + k.Advice
	}
	return text
}

const (
	unpack   = "unpack it first"
	convert  = "export or convert it to ONNX first"
	complete = "download it again, and compare its size with the original's"
)

// magic is the beginning of the files of a kind.
type magic struct {
	at   int
	text string
	kind Kind
}

var magics = []magic{
	{0, "\x1f\x8b", Kind{"a gzip archive", unpack}},
	{0, "BZh", Kind{"a bzip2 archive", unpack}},
	{0, "\xfd7zXZ\x00", Kind{"an xz archive", unpack}},
	{0, "\x28\xb5\x2f\xfd", Kind{"a Zstandard archive", unpack}},
	{0, "7z\xbc\xaf\x27\x1c", Kind{"a 7z archive", unpack}},
	{0, "Rar!\x1a\x07", Kind{"a RAR archive", unpack}},
	{257, "ustar", Kind{"a tar archive", unpack}},
	{4, "TFL3", Kind{"a TensorFlow Lite model", convert}},
	{4, "ORTM", Kind{"a model in ONNX Runtime's own format (ORT)", "use the .onnx file that it was made from"}},
	{0, "GGUF", Kind{"a GGUF model", convert}},
	{0, "\x89HDF\r\n\x1a\n", Kind{"an HDF5 file, such as a Keras model", convert}},
	{0, "\x93NUMPY", Kind{"an .npy array", ""}},
	{0, "\x89PNG\r\n\x1a\n", Kind{"a PNG picture", ""}},
	{0, "\xff\xd8\xff", Kind{"a JPEG picture", ""}},
	{0, "GIF8", Kind{"a GIF picture", ""}},
	{8, "WEBP", Kind{"a WebP picture", ""}},
	{0, "%PDF-", Kind{"a PDF document", ""}},
	{0, "\x7fELF", Kind{"an ELF executable or library", ""}},
	{0, "MZ\x90\x00", Kind{"a Windows executable or library", ""}},
}

// Of looks at the bytes of a whole file.
func Of(data []byte) Kind {
	if len(data) == 0 {
		return Kind{"an empty file", complete}
	}
	if k := pointer(data); k.Name != "" {
		return k
	}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06")) {
		return archive(data)
	}
	for _, m := range magics {
		if len(data) >= m.at+len(m.text) && string(data[m.at:m.at+len(m.text)]) == m.text {
			return m.kind
		}
	}
	if k := pickle(data); k.Name != "" {
		return k
	}
	if n := safetensors(data); n > 0 {
		return Kind{"a safetensors file, which holds weights and no graph", convert}
	}
	if zeros(data) {
		return Kind{"a file of zeros", "the download or the copy did not write its contents: " + complete}
	}
	return text(data)
}

// IsPointer reports whether data is a Git LFS pointer.
func IsPointer(data []byte) bool { return pointer(data).Name != "" }

// pointer recognises a Git LFS pointer: a text of at most 1,024 bytes that
// begins with its version.
func pointer(data []byte) Kind {
	if len(data) > 1024 || !bytes.HasPrefix(data, []byte("version https://git-lfs.github.com/spec/")) && !bytes.HasPrefix(data, []byte("version https://hawser.github.com/spec/")) {
		return Kind{}
	}
	size := ""
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "size "); ok {
			size = " to a file of " + n + " bytes"
		}
	}
	return Kind{"a Git LFS pointer" + size, `fetch the file itself with "git lfs pull"`}
}

// archive looks into a zip archive for what makes it a file of its own kind.
func archive(data []byte) Kind {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Kind{"a ZIP archive that is damaged or cut off", complete}
	}
	models := ""
	for _, f := range r.File {
		switch base := path.Base(f.Name); {
		case base == "data.pkl":
			return Kind{"a PyTorch checkpoint", `export the model with torch.onnx.export`}
		case f.Name == "model.weights.h5":
			return Kind{"a Keras model", convert}
		case strings.HasSuffix(base, ".npy"):
			return Kind{"an .npz archive of arrays", ""}
		case strings.HasSuffix(base, ".onnx") && models == "":
			models = fmt.Sprintf(" that holds %q", f.Name)
		}
	}
	return Kind{"a ZIP archive" + models, unpack}
}

// pickle recognises what Python's pickle writes, in protocols 2 to 5.
func pickle(data []byte) Kind {
	if len(data) < 3 || data[0] != 0x80 || data[1] < 2 || data[1] > 5 || data[len(data)-1] != '.' && !bytes.Contains(data[:min(len(data), 256)], []byte("torch")) {
		return Kind{}
	}
	return Kind{"a Python pickle, such as a PyTorch checkpoint", `export the model with torch.onnx.export`}
}

// safetensors returns the length of the header, 0 where there is none.
func safetensors(data []byte) uint64 {
	const longest = 100_000_000 // as the format has it
	if len(data) < 10 {
		return 0
	}
	n := binary.LittleEndian.Uint64(data)
	if n < 2 || n > longest || data[8] != '{' || !bytes.HasPrefix(bytes.TrimLeft(data[9:], " "), []byte(`"`)) && n != 2 {
		return 0
	}
	return n
}

// zeros reports whether the beginning of a file of some length is zeros.
func zeros(data []byte) bool {
	const enough = 512
	return len(data) >= 16 && len(bytes.Trim(data[:min(len(data), enough)], "\x00")) == 0
}

// text tells kinds of text apart.
func text(data []byte) Kind {
	const enough = 4096
	head := data[:min(len(data), enough)]
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return Kind{"text in UTF-16", "a redirection of Windows PowerShell writes a program's output so, and damages it: write the file by other means"}
	case len(head) >= 16 && len(bytes.Trim(everySecond(head, 1), "\x00")) == 0 && isText(everySecond(head, 0)),
		len(head) >= 16 && len(bytes.Trim(everySecond(head, 0), "\x00")) == 0 && isText(everySecond(head, 1)):
		return Kind{"text in UTF-16", ""}
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	if !isText(head) {
		return Kind{}
	}
	start := strings.ToLower(string(bytes.TrimSpace(head)))
	switch {
	case strings.HasPrefix(start, "<!doctype html"), strings.HasPrefix(start, "<html"), strings.HasPrefix(start, "<head"),
		strings.HasPrefix(start, "<!--") && strings.Contains(start, "<html"):
		return Kind{"an HTML page", "the address that it was downloaded from leads to a page about the file, or to an error"}
	case strings.HasPrefix(start, "<?xml") && strings.Contains(start, "<net"):
		return Kind{"an OpenVINO model", convert}
	case strings.HasPrefix(start, "<?xml"), strings.HasPrefix(start, "<"):
		return Kind{"an XML text", ""}
	case strings.HasPrefix(start, "{"), strings.HasPrefix(start, "["):
		return Kind{"a JSON text", ""}
	case strings.HasPrefix(start, "ir_version:"):
		return Kind{"an ONNX model in the text form of protocol buffers", "write it in the binary form first"}
	case start == "":
		return Kind{"a file of blanks", complete}
	}
	return Kind{"a text", ""}
}

// everySecond returns the bytes at from, from+2, ...
func everySecond(data []byte, from int) []byte {
	half := make([]byte, 0, len(data)/2)
	for i := from; i < len(data); i += 2 {
		half = append(half, data[i])
	}
	return half
}

// isText reports whether the bytes are text: UTF-8 that may be cut at the
// end, without control characters but white space.
func isText(data []byte) bool {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return i > 0 && len(data)-i < utf8.UTFMax && !utf8.FullRune(data[i:])
		case r < ' ' && !strings.ContainsRune("\t\n\v\f\r", r), r == 0x7f:
			return false
		}
		i += n
	}
	return len(data) > 0
}
