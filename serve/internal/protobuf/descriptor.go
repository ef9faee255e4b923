package protobuf

// Descriptor returns the file as a FileDescriptorProto, which describes it to
// clients.
func (f *File) Descriptor() []byte {
	b := AppendString(nil, 1, f.Name)
	b = AppendString(b, 2, f.Package)
	for _, m := range f.messages {
		b = AppendBytes(b, 4, f.messageDescriptor(m))
	}
	for _, e := range f.enums {
		b = AppendBytes(b, 5, e.descriptor())
	}
	for _, s := range f.Services {
		_, name, _ := cutLast(s.Name)
		d := AppendString(nil, 1, name)
		for _, m := range s.Methods {
			x := AppendString(nil, 1, m.Name)
			x = AppendString(x, 2, f.full(m.Input.Name))
			x = AppendString(x, 3, f.full(m.Output.Name))
			x = AppendNumber(x, 5, flag(m.ClientStream))
			d = AppendBytes(d, 2, AppendNumber(x, 6, flag(m.ServerStream)))
		}
		b = AppendBytes(b, 6, d)
	}
	return AppendString(b, 12, "proto3")
}

// full is the name of a message or enum with the package, as descriptors write
// it.
func (f *File) full(name string) string { return "." + f.Package + "." + name }

func flag(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func (f *File) messageDescriptor(m *Message) []byte {
	_, name, _ := cutLast(m.Name)
	b := AppendString(nil, 1, name)
	for _, x := range m.fields {
		label := uint64(1)
		if x.repeated {
			label = 3
		}
		d := AppendString(nil, 1, x.name)
		d = AppendNumber(d, 3, uint64(x.number))
		d = AppendNumber(d, 4, label)
		d = AppendNumber(d, 5, uint64(x.kind))
		switch x.kind {
		case kindMessage:
			d = AppendString(d, 6, f.full(x.message.Name))
		case kindEnum:
			d = AppendString(d, 6, f.full(x.enum.name))
		}
		if x.oneof >= 0 {
			d = append(AppendTag(d, 9, Varint), byte(x.oneof)) // the first one is zero
		}
		b = AppendBytes(b, 2, d)
	}
	for _, n := range m.messages {
		b = AppendBytes(b, 3, f.messageDescriptor(n))
	}
	for _, e := range m.enums {
		b = AppendBytes(b, 4, e.descriptor())
	}
	if m.entry {
		b = AppendBytes(b, 7, AppendNumber(nil, 7, 1))
	}
	for _, o := range m.oneofs {
		b = AppendBytes(b, 8, AppendString(nil, 1, o))
	}
	return b
}

func (e *enum) descriptor() []byte {
	_, name, _ := cutLast(e.name)
	b := AppendString(nil, 1, name)
	for i, n := range e.names {
		v := AppendString(nil, 1, n)
		b = AppendBytes(b, 2, append(AppendTag(v, 2, Varint), byte(e.numbers[i])))
	}
	return b
}
