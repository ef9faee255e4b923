package exec

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
)

// shortPiece is the least number of bytes of the pieces that a part consists
// of: to compute with shorter ones takes longer than to copy them.
const shortPiece = 512

// shortPieces is the reason not to join a part of short pieces.
func (j *joiner) shortPieces(n int64) string {
	if j.short[n] == "" {
		j.short[n] = fmt.Sprintf("pieces of %d bytes are copied faster", n)
	}
	return j.short[n]
}

// pieceOf returns how many bytes of a part follow one another in the whole.
func (j *joiner) pieceOf(part, whole *ir.Value) int64 {
	typ, strides, n := j.types.Of(part), j.strides(whole), 1
	for d, size := range slices.Backward(typ.Shape.Sizes()) {
		if size != 1 && strides[d] != n {
			break
		}
		n *= size
	}
	return int64(n * typ.DType.Size())
}

// isReadByRows reports whether call k takes the values of a storage out of
// another one, and only views and calls that collect rows read them: these take
// as long with short pieces as with one.
func (j *joiner) isReadByRows(k int, s *storage) bool {
	for v := range j.in(s) {
		if def := j.index.Def(v); def != k && (def < 0 || !j.isView(def, v.Index)) {
			return false
		}
		for _, user := range j.users[v.ID] {
			c := &j.calls[user]
			if user != k && !slices.Contains(rowCollectors, c.Op.Name) && !j.isPlacedView(user) {
				return false
			}
		}
	}
	return true
}

// rowCollectors are operators that put rows of their operands side by side, or
// elsewhere, before they compute with them.
var rowCollectors = []string{"attention", "block_attention", "fused_attention", "transpose"}
