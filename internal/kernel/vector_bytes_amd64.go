package kernel

import "github.com/tenure-go/tenure/internal/cpu"

type byteCode struct {
	width, step int
	byteTiles   []byteTileFunc
	lanes       int // of requant
	requant     func(n int, dst *byte, x *int32, scale, lo, hi float32, add, zero int32)
	packBytes   func(depth int, dst, b *byte, ldb int, flip uint64, sums *int32)
}

type byteTileFunc func(depth int, a *byte, lda int, b *byte, c *int32, ldc int, nr int, from *int32, ldfrom int)

var (
	bytes256 = byteCode{width: 16, step: 2, byteTiles: byteTiles256[:], lanes: 8, requant: requant256, packBytes: packBytes256}
	bytes512 = byteCode{width: 32, step: 4, byteTiles: byteTiles512[:], lanes: 16, requant: requant512, packBytes: packBytes512}
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
	byteGroups = v.groups
	narrowSums = v.narrow
	quantizeRow, dequantizeRow = quantizeVectors, dequantizeVectors
}

func quantizeVectors(dst []byte, x []float32, scale float32, lo, hi, zero float64) int {
	n := len(x) / 8
	if n > 0 {
		_ = dst[n*8-1]
		quantizeBytes256(n, &dst[0], &x[0], scale, float32(lo-zero), float32(hi-zero), int32(zero))
	}
	return n * 8
}

func dequantizeVectors(dst []float32, x []byte, signed bool, scale float32, zero float64) int {
	n := len(x) / 8
	if n == 0 {
		return 0
	}
	_ = dst[n*8-1]
	if signed {
		dequantizeI8x256(n, &dst[0], &x[0], scale, int32(zero))
	} else {
		dequantizeU8x256(n, &dst[0], &x[0], scale, int32(zero))
	}
	return n * 8
}

// groups packs as many whole groups of rows as lie in b, a panel's width of each, and returns how many.
func (v *byteCode) groups(panel, b []byte, ldb, depth int, flip byte, sums []int32) int {
	if len(b) < v.width {
		return 0
	}
	if ldb > 0 {
		depth = min(depth, ((len(b)-v.width)/ldb+1)/v.step)
	}
	if depth == 0 {
		return 0
	}
	_, _ = panel[depth*v.width*v.step-1], sums[v.width-1]
	v.packBytes(depth, &panel[0], &b[0], ldb, uint64(flip)*0x0101010101010101, &sums[0])
	return depth
}

// narrow does whole vectors.
func (v *byteCode) narrow(dst []byte, sums []int32, add int32, scale float32, lo, hi, zero float64) int {
	n := len(sums) / v.lanes
	if n > 0 {
		_ = dst[n*v.lanes-1]
		v.requant(n, &dst[0], &sums[0], scale, float32(lo-zero), float32(hi-zero), add, int32(zero))
	}
	return n * v.lanes
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
