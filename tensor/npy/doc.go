// Package npy reads and writes tensors in numpy's files: .npy (one array) and
// .npz (a zip of arrays).
//
//	x, err := npy.ReadFile("input.npy")
//	if err != nil {
//		return err
//	}
//	defer x.Release()
//
// # Reading
//
// Versions 1, 2 and 3 of the format, C and Fortran order, little and big
// endian: bool, signed and unsigned integers of 8 to 64 bits, floats of 16 to
// 64 bits, complex of 64 and 128. The result is always contiguous in C order
// and in the machine's byte order, and every bool is 0 or 1. Strings, S and U,
// become text as [tensor.OfStrings] makes it: those of S byte by byte, those of
// U in UTF-8. Dates, records and Python objects are ErrUnsupported: nothing in
// a file is ever evaluated. A malformed file is ErrCorrupt, and its header is
// not trusted: no more memory is allocated than the file has bytes (twice that
// for Fortran order, compressed entries and streams).
//
// [ReadTo] and [ReadFileTo] read into the memory of a device, through a window
// of a mebibyte. A buffer there is as large as the file says if the file has
// the bytes; for a stream it grows with what comes, to at most twice of it.
//
// # Writing
//
// The machine's byte order, C order, version 1 (2 if the header is long). Types
// that numpy has are written as they are, f16 among them. Types that numpy
// lacks are written as the smallest type of numpy's that holds every value
// exactly: bf16 and the floats of 8 bits and less as float32, integers of less
// than a byte as int8 or uint8. Reading such a file returns that wider type.
// [WriteStrings] writes text. Opaque types and complex numbers of half
// precision are ErrUnsupported.
//
// # Ownership
//
// The caller owns the tensors that are read. Written tensors are borrowed.
// [Archive] holds its file open until Close.
//
// # Concurrency
//
// All functions may be called from any goroutine, an Archive's Read too.
package npy
