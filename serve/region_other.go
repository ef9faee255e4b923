//go:build !linux

package serve

import (
	"os"

	"github.com/tenure-go/tenure"
)

// openRegion opens shared memory by its name. Where the system does not have it
// as files, it could only be mapped.
func openRegion(string) (*os.File, error) { return nil, tenure.ErrUnsupported }
