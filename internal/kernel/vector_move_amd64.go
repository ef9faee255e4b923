package kernel

import "unsafe"

// turnWords turns what squares cover. The last ones overlap those before them, so that a block of at least a square has no edges.
func (v *rowCode) turnWords(dst []uint32, dstP int, src []uint32, from, srcQ, np, nq int) bool {
	side := v.bytes / 4
	if np < side || nq < side {
		return false
	}
	last := from + (nq-1)*srcQ
	_, _, _ = dst[(np-1)*dstP+nq-1], src[min(from, last)], src[max(from, last)+np-1]
	for p := 0; p < np; p += side {
		p = min(p, np-side)
		v.transpose(nq/side, &dst[p*dstP], &src[from+p], 4*dstP, 4*srcQ)
		if rest := nq - side; nq%side != 0 {
			v.transpose(1, &dst[p*dstP+rest], &src[from+p+rest*srcQ], 4*dstP, 4*srcQ)
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
