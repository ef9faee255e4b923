package kernel

import "github.com/tenure-go/tenure/internal/cpu"

type byteCode struct {
	width, step int
	byteTiles   []byteTileFunc
}

type byteTileFunc func(depth int, a *byte, lda int, b *byte, c *int32, ldc int, nr int, from *int32, ldfrom int)

var (
	bytes256 = byteCode{width: 16, step: 2, byteTiles: byteTiles256[:]}
	bytes512 = byteCode{width: 32, step: 4, byteTiles: byteTiles512[:]}
)

// bytesOfTier is what the wide vectors can do: not all that have them multiply bytes.
func bytesOfTier() byteCode {
	if cpu.HasVNNI() {
		return bytes512
	}
	return bytes256
}

func (v *byteCode) install() {
	byteNR, byteStep = v.width, v.step
	bytePanel = v.bytePanel
}

// bytePanel cuts the rows into tiles of nearly equal height.
func (v *byteCode) bytePanel(m, depth int, a []byte, lda int, b []byte, c []int32, ldc, nr int, from []int32, ldfrom int) {
	if m == 0 {
		return
	}
	if depth == 0 {
		for i := range m {
			copy(c[i*ldc:][:nr], from[i*ldfrom:])
		}
		return
	}
	_, _, _, _ = a[(m-1)*lda+4*depth-1], b[depth*v.width*v.step-1], c[(m-1)*ldc+nr-1], from[(m-1)*ldfrom+nr-1]
	for tiles := ceilDiv(m, len(v.byteTiles)-1); tiles > 0; tiles-- {
		rows := ceilDiv(m, tiles)
		v.byteTiles[rows](depth, &a[0], lda, &b[0], &c[0], 4*ldc, nr, &from[0], 4*ldfrom)
		if m -= rows; m > 0 {
			a, c, from = a[rows*lda:], c[rows*ldc:], from[rows*ldfrom:]
		}
	}
}
