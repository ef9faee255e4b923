// Package safetensors reads and writes tensors in safetensors files: a header
// of names, types, shapes and places, and the bytes of all tensors behind it.
//
//	f, err := safetensors.Open("model.safetensors")
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	w, err := f.Tensor("embed.weight")
//
// # Reading
//
// [Open] maps the file and reads its header; nothing else is read until it is
// accessed. [File.Tensor] returns a tensor over the mapped bytes: read-only,
// another holder of the mapping, and valid after [File.Close]. A tensor whose
// bytes do not lie at a multiple of its elements is copied, once per call; the
// format leaves alignment to the writer, and most writers align.
//
// The header is not trusted. Every tensor takes exactly the bytes of its type
// and shape, all tensors together cover the data without a gap or an overlap,
// no name occurs twice, and numbers are whole and not negative: anything else
// is [tensor.ErrCorrupt] with the name of the entry. Types that tensors
// do not have are [tensor.ErrUnsupported] when that tensor is read, so that the
// others of the file can be read.
//
// [File.TensorTo] copies a tensor into the memory of a device, straight from
// the mapped file.
//
// If a file is truncated while it is mapped, reading behind its end kills
// the process: replace such files by renaming a new one over them. [Parse]
// reads a file that is in memory already.
//
// # Writing
//
// [Write] puts tensors with larger elements first and the data at a multiple of
// 8 bytes, so that its files are read without a copy. The same tensors make the
// same bytes.
//
// # Concurrency
//
// All functions may be called from any goroutine, and the methods of a File
// too, but for Close, which comes last.
package safetensors
