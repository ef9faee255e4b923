package gemm

import "github.com/tenure-go/tenure/internal/kernel"

// ahead are rows of B that will be needed after those in hand, as wide as a
// panel and ld apart. They are needed so long after them that the processor
// does not prefetch them by itself.
type ahead struct {
	from     []float32 // the first one and those after it
	ld, rows int
}

// skip moves on by some rows.
func (a *ahead) skip(rows int) {
	if a.rows -= rows; a.rows > 0 {
		a.from = a.from[rows*a.ld:]
	}
}

// sums is where the sums of a panel go: into rows of c, with rows at from added
// unless that is nil, and the greater of zero taken if relu. from may be c.
type sums struct {
	c, from     []float32
	ldc, ldfrom int
	relu        bool
}

// start is where rows to be added begin.
func (s *sums) start() *float32 {
	if s.from == nil {
		return nil
	}
	return &s.from[0]
}

// check reaches for the last elements of m rows.
func (s *sums) check(m, nr int) {
	_ = s.c[(m-1)*s.ldc+nr-1]
	if s.from != nil {
		_ = s.from[(m-1)*s.ldfrom+nr-1]
	}
}

// skip moves on by some rows.
func (s *sums) skip(rows int) {
	s.c = s.c[rows*s.ldc:]
	if s.from != nil {
		s.from = s.from[rows*s.ldfrom:]
	}
}

// portableGemmPanel works in tiles of 2 x 4: eight sums, and what feeds them,
// are what fits into scalar registers. The compiler drops all bounds checks of
// the unrolled loop.
func portableGemmPanel(m, depth int, a []float32, lda int, b []float32, nr int, s sums) {
	b = b[:depth*kernel.PortableNR]
	var sum [8]float32
	i := 0
	for ; i+2 <= m; i += 2 {
		a0, a1 := a[i*lda:][:depth], a[(i+1)*lda:][:depth]
		for j := 0; j < nr; j += 4 {
			micro2x4(a0, a1, b[j:], &sum)
			s.store4(i, j, sum[:4], nr-j)
			s.store4(i+1, j, sum[4:], nr-j)
		}
	}
	if i < m {
		micro1x8(a[i*lda:][:depth], b, &sum)
		s.store4(i, 0, sum[:4], nr)
		if nr > 4 {
			s.store4(i, 4, sum[4:], nr-4)
		}
	}
}

// store4 stores at most four sums from row i, column j on.
func (s *sums) store4(i, j int, sum []float32, n int) {
	n = min(n, 4)
	c, sum := s.c[i*s.ldc+j:][:n], sum[:n]
	if s.from != nil {
		for k, x := range s.from[i*s.ldfrom+j:][:n] {
			sum[k] += x
		}
	}
	if s.relu {
		for k, x := range sum {
			sum[k] = max(x, 0)
		}
	}
	copy(c, sum)
}

// micro2x4 multiplies two rows of A with four columns of a panel.
func micro2x4(a0, a1, b []float32, sum *[8]float32) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	for len(a0) >= 4 && len(a1) >= 4 && len(b) >= 3*kernel.PortableNR+4 {
		x, y := a0[0], a1[0]
		v := b[0]
		s00, s10 = s00+x*v, s10+y*v
		v = b[1]
		s01, s11 = s01+x*v, s11+y*v
		v = b[2]
		s02, s12 = s02+x*v, s12+y*v
		v = b[3]
		s03, s13 = s03+x*v, s13+y*v

		x, y = a0[1], a1[1]
		v = b[kernel.PortableNR]
		s00, s10 = s00+x*v, s10+y*v
		v = b[kernel.PortableNR+1]
		s01, s11 = s01+x*v, s11+y*v
		v = b[kernel.PortableNR+2]
		s02, s12 = s02+x*v, s12+y*v
		v = b[kernel.PortableNR+3]
		s03, s13 = s03+x*v, s13+y*v

		x, y = a0[2], a1[2]
		v = b[2*kernel.PortableNR]
		s00, s10 = s00+x*v, s10+y*v
		v = b[2*kernel.PortableNR+1]
		s01, s11 = s01+x*v, s11+y*v
		v = b[2*kernel.PortableNR+2]
		s02, s12 = s02+x*v, s12+y*v
		v = b[2*kernel.PortableNR+3]
		s03, s13 = s03+x*v, s13+y*v

		x, y = a0[3], a1[3]
		v = b[3*kernel.PortableNR]
		s00, s10 = s00+x*v, s10+y*v
		v = b[3*kernel.PortableNR+1]
		s01, s11 = s01+x*v, s11+y*v
		v = b[3*kernel.PortableNR+2]
		s02, s12 = s02+x*v, s12+y*v
		v = b[3*kernel.PortableNR+3]
		s03, s13 = s03+x*v, s13+y*v

		a0, a1 = a0[4:], a1[4:]
		if len(b) < 4*kernel.PortableNR { // the right half of a panel ends four short of its last row
			b = nil
			break
		}
		b = b[4*kernel.PortableNR:]
	}
	a1 = a1[:len(a0)]
	for k, x := range a0 {
		y, row := a1[k], b[k*kernel.PortableNR:][:4]
		s00, s10 = s00+x*row[0], s10+y*row[0]
		s01, s11 = s01+x*row[1], s11+y*row[1]
		s02, s12 = s02+x*row[2], s12+y*row[2]
		s03, s13 = s03+x*row[3], s13+y*row[3]
	}
	*sum = [8]float32{s00, s01, s02, s03, s10, s11, s12, s13}
}

// micro1x8 multiplies one row of A with a panel.
func micro1x8(a, b []float32, sum *[8]float32) {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for k, x := range a {
		row := b[k*kernel.PortableNR:][:kernel.PortableNR]
		s0, s1, s2, s3 = s0+x*row[0], s1+x*row[1], s2+x*row[2], s3+x*row[3]
		s4, s5, s6, s7 = s4+x*row[4], s5+x*row[5], s6+x*row[6], s7+x*row[7]
	}
	*sum = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
}

// portableGemvAxpy takes four rows of B at a time, so that out is read and
// written once for four products. It adds them one after the other: a sum does
// not depend on the number of rows that come at once.
func portableGemvAxpy(out, a, b []float32, ldb int) {
	n := len(out)
	k := 0
	for ; k+4 <= len(a); k += 4 {
		x0, x1, x2, x3 := a[k], a[k+1], a[k+2], a[k+3]
		b0, b1 := b[k*ldb:][:n], b[(k+1)*ldb:][:n]
		b2, b3 := b[(k+2)*ldb:][:n], b[(k+3)*ldb:][:n]
		for j := range out {
			out[j] = out[j] + x0*b0[j] + x1*b1[j] + x2*b2[j] + x3*b3[j]
		}
	}
	for ; k < len(a); k++ {
		x, row := a[k], b[k*ldb:][:n]
		for j := range out {
			out[j] += x * row[j]
		}
	}
}

func portableGemvDot(out, a, b []float32, ldb int) {
	for j := range out {
		out[j] += dot(a, b[j*ldb:][:len(a)])
	}
}

// dot keeps four sums, so that additions do not wait for each other.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0, s1 = s0+a[0]*b[0], s1+a[1]*b[1]
		s2, s3 = s2+a[2]*b[2], s3+a[3]*b[3]
		a, b = a[4:], b[4:]
	}
	b = b[:len(a)]
	for i := range a {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}
