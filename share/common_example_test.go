package share_test

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/tenure-go/tenure/share"
)

// Every process that runs this reads the same table in the same memory; the
// first one computes it.
func ExampleCommon() {
	const n = 1 << 16
	key := share.Key(sha256.Sum256([]byte("squares modulo 251, 65536 bytes")))
	b, _, err := share.Common(context.Background(), key, n, "squares", func(dst []byte) error {
		for i := range dst {
			dst[i] = byte(i * i % 251)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err) // on systems other than Linux
		return
	}
	defer b.Release()
	fmt.Println(b.Bytes()[1000])
	// Output: 16
}
