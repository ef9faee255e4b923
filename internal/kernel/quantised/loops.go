package quantised

import "github.com/tenure-go/tenure/internal/kernel"

// quantizeRow divides numbers by a scale, rounds them to bytes between lo and
// hi and adds zero. It returns how many it has done.
func quantizeRow(v *kernel.Variant, dst []byte, x []float32, scale float32, lo, hi, zero float64) int {
	n := len(x) / 8
	if n > 0 {
		_ = dst[n*8-1]
		v.Bytes.Quantize(n, &dst[0], &x[0], scale, float32(lo-zero), float32(hi-zero), int32(zero))
	}
	return n * 8
}

// dequantizeRow is its reverse.
func dequantizeRow(v *kernel.Variant, dst []float32, x []byte, signed bool, scale float32, zero float64) int {
	n := len(x) / 8
	if n == 0 {
		return 0
	}
	_ = dst[n*8-1]
	if signed {
		v.Bytes.DequantizeI8(n, &dst[0], &x[0], scale, int32(zero))
	} else {
		v.Bytes.DequantizeU8(n, &dst[0], &x[0], scale, int32(zero))
	}
	return n * 8
}

// byteGroups packs as many whole groups of rows as lie in b, a panel's width of
// each, with the sums of the columns, and returns how many.
func byteGroups(v *kernel.Variant, panel, b []byte, ldb, depth int, flip byte, sums []int32) int {
	if len(b) < v.Bytes.Width {
		return 0
	}
	if ldb > 0 {
		depth = min(depth, ((len(b)-v.Bytes.Width)/ldb+1)/v.Bytes.Step)
	}
	if depth == 0 {
		return 0
	}
	_, _ = panel[depth*v.Bytes.Width*v.Bytes.Step-1], sums[v.Bytes.Width-1]
	v.Bytes.Pack(depth, &panel[0], &b[0], ldb, uint64(flip)*0x0101010101010101, &sums[0])
	return depth
}

// narrowRows requantises as many columns of rows of sums as fill vectors, and
// returns how many. Their factors are finite.
func narrowRows(v *kernel.Variant, rows int, dst []byte, ldd int, sums []int32, lds int, scale []float32, lo, hi, zero float64) int {
	if v.Bytes.RequantRows == nil || rows == 0 {
		return 0
	}
	n := len(scale) / v.Bytes.Lanes
	done := n * v.Bytes.Lanes
	if n > 0 {
		_, _ = dst[(rows-1)*ldd+done-1], sums[(rows-1)*lds+done-1]
		v.Bytes.RequantRows(rows, n, &dst[0], ldd, &sums[0], 4*lds, &scale[0], float32(lo-zero), float32(hi-zero), int32(zero))
	}
	return done
}

// bytePanel computes m rows of sums, nr <= v.Bytes.Width columns wide, of depth
// groups of unsigned A and signed B, with rows at from, ldfrom apart, added. It
// cuts the rows into tiles of nearly equal height.
func bytePanel(v *kernel.Variant, m, depth int, a []byte, lda int, b []byte, c []int32, ldc, nr int, from []int32, ldfrom int) {
	if m == 0 {
		return
	}
	if depth == 0 {
		for i := range m {
			copy(c[i*ldc:][:nr], from[i*ldfrom:])
		}
		return
	}
	_, _, _, _ = a[(m-1)*lda+4*depth-1], b[depth*v.Bytes.Width*v.Bytes.Step-1], c[(m-1)*ldc+nr-1], from[(m-1)*ldfrom+nr-1]
	for tiles := kernel.CeilDiv(m, len(v.Bytes.Tiles)-1); tiles > 0; tiles-- {
		rows := kernel.CeilDiv(m, tiles)
		v.Bytes.Tiles[rows](depth, &a[0], lda, &b[0], &c[0], 4*ldc, nr, &from[0], 4*ldfrom)
		if m -= rows; m > 0 {
			a, c, from = a[rows*lda:], c[rows*ldc:], from[rows*ldfrom:]
		}
	}
}
