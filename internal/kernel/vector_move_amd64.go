package kernel

import "unsafe"

// turnSquares turns what squares cover. The last ones overlap those before them, so that a block of at least a square has no edges.
func turnSquares[W word](turn func(n int, dst, src *W, dstStep, srcStep int), side int, dst []W, dstP int, src []W, from, srcQ, np, nq int) bool {
	if np < side || nq < side {
		return false
	}
	size := int(unsafe.Sizeof(dst[0]))
	last := from + (nq-1)*srcQ
	_, _, _ = dst[(np-1)*dstP+nq-1], src[min(from, last)], src[max(from, last)+np-1]
	for p := 0; p < np; p += side {
		p = min(p, np-side)
		turn(nq/side, &dst[p*dstP], &src[from+p], size*dstP, size*srcQ)
		if rest := nq - side; nq%side != 0 {
			turn(1, &dst[p*dstP+rest], &src[from+p+rest*srcQ], size*dstP, size*srcQ)
		}
	}
	return true
}

// streamRow copies the ends, which are no whole lines, as usual. Vectors of 32 bytes reach what the memory gives on every machine.
func (v *rowCode) streamRow(dst, src []float32) {
	const align, step = 32, 32 // bytes, elements
	head := min(int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst)))%align)/4, len(dst))
	copy(dst[:head], src)
	dst, src = dst[head:], src[head:]
	for len(dst) >= step {
		n := min(len(dst), asmElements) / step * step
		_ = src[n-1]
		v.stream(n/step, &dst[0], &src[0])
		dst, src = dst[n:], src[n:]
	}
	copy(dst, src)
}
