// Package wire decodes ONNX files: from bytes to structs that mirror the
// messages of onnx.proto, and from tensors as encoded to the bytes of their
// elements.
//
//	m, err := wire.Decode(file)
//	for i := range m.Graph.Initializers {
//		data, err := m.Graph.Initializers[i].Check()
//		...
//	}
//
// A file may hold anything. A fault of the encoding names the field and the
// byte offset, and is of the kind [tensor.ErrCorrupt]; memory stays in
// proportion to the file. What the messages mean is the concern of package
// onnx.
//
// Strings are copies. Bytes of tensors are parts of the file, which must stay
// as it is for as long as they are in use. Decoded messages are only read,
// which any number of goroutines may do.
package wire
