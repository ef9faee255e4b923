//go:build amd64 || arm64

package dlpack

//lint:file-ignore U1000 the constants are for the assembly

import (
	"unsafe"

	"github.com/tenure-go/tenure/memory"
)

// Constants for the assembly.
const (
	offsetCtx       = unsafe.Offsetof(DLManagedTensorVersioned{}.ManagerCtx)
	offsetLegacyCtx = unsafe.Offsetof(DLManagedTensor{}.ManagerCtx)
	unitReadOnly    = memory.ForeignUnit
	unitWritable    = memory.ForeignWrite
	maskExports     = memory.ForeignExports
	maskBusy        = memory.ForeignBusy
	maskDead        = memory.ForeignDead
	offsetIndex     = memory.ForeignIndex
	offsetNext      = memory.ForeignNext
)

func deleterAddresses() (readOnly, writable, legacy uintptr)
