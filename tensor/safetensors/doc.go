// Package safetensors reads and writes tensors in safetensors files: a header
// of names, types, shapes and places, and the bytes of all tensors behind it.
//
// # Reading
//
// [Open] maps the file and reads its header; nothing else is read until it is
// looked at. [File.Tensor] gives a tensor over the mapped bytes: read-only,
// another holder of the mapping, and good after [File.Close]. A tensor whose
// bytes do not lie at a multiple of its elements is copied, once per call; the
// format leaves alignment to whoever writes, and most writers align.
//
// The header is not believed. Every tensor takes exactly the bytes of its type
// and shape, all tensors together cover the data without a gap or an overlap,
// no name is given twice, and numbers are whole and not negative: anything else
// is [tensor.ErrCorrupt] with the name of the entry. Types that have no place
// in a tensor are [tensor.ErrUnsupported] when that tensor is asked for, so
// that the others of the file can be had.
//
// If somebody truncates a file while it is mapped, reading behind its end kills
// the process: replace such files by renaming a new one over them. [Parse]
// reads a file that is in memory already.
//
// # Writing
//
// [Write] puts tensors with larger elements first and the data at a multiple of
// 8 bytes, so that what it writes is read without a copy. The same tensors give
// the same bytes.
//
// # Concurrency
//
// All functions may be called from any goroutine, and the methods of a File too,
// but for Close, which comes last.
//
//	f, err := safetensors.Open("model.safetensors")
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	w, err := f.Tensor("embed.weight")
package safetensors
