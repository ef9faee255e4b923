//go:build amd64 || arm64

package dlpack

func deleterAddresses() (readOnly, writable, legacy uintptr)
