package kernel

// Winograd has the matrices of a convolution of three taps with fewer
// multiplications: Outputs neighbouring results of taps g on elements d, of
// which there are Outputs+2, are
//
//	Output * ((Weights * g) .* (Input * d))
//
// where .* multiplies element by element. In two dimensions each matrix is
// applied to the columns and then to the rows. These are the minimal algorithms
// of Winograd (Arithmetic Complexity of Computations, 1980), as Lavin and Gray
// use them for convolutions (Fast Algorithms for Convolutional Neural Networks,
// 2016). Points are chosen for small errors; factors that are no powers of two
// are in Weights, which are transformed once, with 64 bits.
type Winograd struct {
	Outputs                int
	Input, Weights, Output [][]float64
}

// Winograds are the algorithms that have loops: F(2), with the points 0, 1, -1
// and infinity, and F(4), with 0, 1, -1, 1/2, -2 and infinity.
var Winograds = [...]*Winograd{
	{
		Outputs: 2,
		Input: [][]float64{
			{1, 0, -1, 0},
			{0, 1, 1, 0},
			{0, -1, 1, 0},
			{0, -1, 0, 1},
		},
		Weights: [][]float64{
			{1, 0, 0},
			{1. / 2, 1. / 2, 1. / 2},
			{1. / 2, -1. / 2, 1. / 2},
			{0, 0, 1},
		},
		Output: [][]float64{
			{1, 1, 1, 0},
			{0, 1, -1, 1},
		},
	},
	{
		Outputs: 4,
		Input: [][]float64{
			{1, -1.5, -2, 1.5, 1, 0},
			{0, -1, 0.5, 2.5, 1, 0},
			{0, 1, -2.5, 0.5, 1, 0},
			{0, -2, -1, 2, 1, 0},
			{0, 0.5, -1, -0.5, 1, 0},
			{0, 1, -1.5, -2, 1.5, 1},
		},
		Weights: [][]float64{
			{1, 0, 0},
			{1. / 3, 1. / 3, 1. / 3},
			{-1. / 3, 1. / 3, -1. / 3},
			{-16. / 15, -8. / 15, -4. / 15},
			{1. / 15, -2. / 15, 4. / 15},
			{0, 0, 1},
		},
		Output: [][]float64{
			{1, 1, 1, 1, 1, 0},
			{0, 1, -1, 0.5, -2, 0},
			{0, 1, 1, 0.25, 4, 0},
			{0, 1, -1, 0.125, -8, 1},
		},
	},
}

// Size returns the number of elements that Outputs results read.
func (w *Winograd) Size() int { return w.Outputs + 2 }

// WinogradLoops are the loops of one algorithm in two dimensions. Elements of
// the input lie in parts: row y and column x of a plane in that of y and x
// modulo Outputs, so that neighbours of a part are those of neighbouring tiles.
type WinogradLoops struct {
	Split  func(call WinogradSplit)
	Input  func(call WinogradTransform)
	Output func(call WinogradTransform)
}

// WinogradTable has the loops of each of Winograds.
type WinogradTable [len(Winograds)]WinogradLoops

// WinogradSplit has the arguments of the loop that takes rows apart, whose
// elements go to Outputs parts in turn. It reads and writes whole vectors, and
// writes the rows in order.
type WinogradSplit struct {
	Src     *float32
	SrcStep int // bytes, as all steps are
	Dst     *float32
	DstStep int // from row to row of a part
	Part    int // from part to part
	Rows    int // at least 1
	Vectors int // of a row of a part
}

// WinogradTransform has the arguments of the loops that transform tiles.
//
// Input transforms Count vectors of neighbouring tiles. Src is the first part;
// SrcStep is from row to row of a part, and SrcPart from one part to the next.
// Dst has a plane for each element of a tile, DstPart apart.
//
// Output transforms Count tiles of a vector of channels, SrcStep apart in
// planes SrcPart apart. Results of a tile are DstStep apart in a column and
// DstPart in a row.
type WinogradTransform struct {
	Src              *float32
	SrcStep, SrcPart int
	Dst              *float32
	DstStep, DstPart int
	Count            int      // at least 1
	Scratch          *float32 // Size()^2 vectors
}
