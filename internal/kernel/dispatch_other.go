//go:build !amd64

package kernel

// machineVariants are those that this architecture adds to the portable one.
func machineVariants() []variant { return nil }
