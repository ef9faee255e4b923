package ref

// Epilogue is the operation after a product: act(v + Beta*bias + residual).
type Epilogue struct {
	Bias       string // "", "scalar", "row", "col" or "full"
	Beta       float64
	Act        string // a unary function, or ""
	ActA, ActB float64
}

// apply finishes the element at row and column of a matrix of the given width;
// at is its number in the residual, which may be nil.
func (e Epilogue) apply(v float64, row, col, width int, bias []float32, residual []float32, at int) float64 {
	switch e.Bias {
	case "scalar":
		v += e.Beta * float64(bias[0])
	case "row":
		v += e.Beta * float64(bias[row])
	case "col":
		v += e.Beta * float64(bias[col])
	case "full":
		v += e.Beta * float64(bias[row*width+col])
	}
	if residual != nil {
		v += float64(residual[at])
	}
	if e.Act != "" {
		v = Unary(e.Act, v, e.ActA, e.ActB)
	}
	return v
}

// Gemm is act(Alpha*A*B + Beta*bias + residual) over a batch; strides of 0
// broadcast. Rows of the stored matrices are LDA and LDB apart.
type Gemm struct {
	M, N, K        int
	TransA, TransB bool
	LDA, LDB       int
	Alpha          float64
	Batch          []int
	BatchA, BatchB []int
	Epilogue
}

// Run returns C, its matrices one after the other, rows without gaps.
func (g Gemm) Run(a, b, bias, residual []float32) []float64 {
	var out []float64
	Each(g.Batch, func(idx []int) {
		offA, offB := 0, 0
		for k, i := range idx {
			offA += i * g.BatchA[k]
			offB += i * g.BatchB[k]
		}
		for row := range g.M {
			for col := range g.N {
				sum := 0.0
				for k := range g.K {
					i, j := row*g.LDA+k, k*g.LDB+col
					if g.TransA {
						i = k*g.LDA + row
					}
					if g.TransB {
						j = col*g.LDB + k
					}
					sum += float64(a[offA+i]) * float64(b[offB+j])
				}
				out = append(out, g.apply(g.Alpha*sum, row, col, g.N, bias, residual, len(out)))
			}
		}
	})
	return out
}
