package wire

import "encoding/binary"

// TensorHead encodes the fields of a TensorProto before its data: dims, element
// type and name.
func TensorHead(name string, code int32, sizes []int) (head []byte) {
	number := func(field int, v uint64) {
		head = binary.AppendUvarint(head, uint64(field)<<3|TypeVarint)
		head = binary.AppendUvarint(head, v)
	}
	for _, n := range sizes {
		number(1, uint64(n))
	}
	number(2, uint64(code))
	if name != "" {
		head = append(AppendLength(head, 8, len(name)), name...)
	}
	return head
}

// AppendLength appends the tag and the length of a field of n bytes.
func AppendLength(b []byte, field, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3|TypeBytes), uint64(n))
}
