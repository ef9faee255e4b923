//go:build !amd64 && !arm64

package dlpack

// deleterAddresses returns none on this platform, and Export fails.
func deleterAddresses() (readOnly, writable, legacy uintptr) { return 0, 0, 0 }
