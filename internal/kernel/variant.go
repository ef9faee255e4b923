package kernel

// Variant is a table of the innermost loops of the kernels for one set of
// instructions, with the sizes that these loops need. Package x86 has the
// variants of its architecture, written by the generator; Portable has no
// loops.
//
// A loop takes addresses and counts, and checks nothing. It reads and writes
// whole rows, or as many whole groups or vectors as its field says. Where a
// loop is nil, the kernel uses its own loop in Go.
//
// A variant never changes. Any number of goroutines may use it, and several
// variants may be used side by side. Prepared specs and packed weights are for
// the variant that prepared or packed them.
type Variant struct {
	Name       string
	Rows       RowLoops
	Elements   ElementLoops
	Gemm       GemmLoops
	Bytes      ByteLoops
	Conv       ConvLoops
	Compressed CompressedLoops
	Nbits      NbitsLoops
}

// Portable is the variant without assembly, which every machine runs.
var Portable = &Variant{
	Name:       "portable",
	Gemm:       GemmLoops{Width: PortableNR},
	Conv:       ConvLoops{Lanes: 1},
	Compressed: CompressedLoops{Lanes: PortableExpandLanes},
	Nbits:      NbitsLoops{Lanes: PortableNbitsLanes},
}

// AsmElements is the number of elements that one call of assembly computes at
// most. Assembly cannot be preempted, and a garbage collection waits for it: a
// call must not take longer than some ten microseconds.
const AsmElements = 16 << 10

// RowLoops are loops over rows of float32.
type RowLoops struct {
	Bytes int // size of a vector; 0 if there are no loops

	// Elementwise functions: of one operand, with one and two scalars; of two
	// operands, of which one may be a scalar.
	Unary              UnaryRows
	UnaryS             UnaryRowsS
	UnaryST            UnaryRowsST
	BinaryVV           BinaryRows
	BinaryVS, BinarySV BinaryRowsS

	// Powers. A variant that has them also has Mul of BinaryVV, Div of
	// BinarySV, Min and the square root.
	Cube          RowFunc // x^3
	ThreeQuarters RowFunc // x^(3/4), for positive numbers

	// UnaryStream has loops that write past the caches, for functions that take
	// longer to compute than to store. dst begins at a multiple of a vector's
	// size.
	UnaryStream UnaryStreams

	Sum     func(n int, x *float32) float64            // of x[i]
	Squares func(n int, x *float32, s float32) float64 // of (x[i]-s)^2
	Max     func(n int, x *float32, s float32) float32 // of s and x[i]; NaN if one of x[i] is
	Min     func(n int, x *float32, s float32) float32

	// Softmax. A variant has all of them, with Max and with Mul and Sub of
	// BinaryVS, or none.
	SoftmaxRow    RowFunc                                         // exp(x[i]) / sum(exp(x[j])); n is not 0
	ExpSum        func(n int, dst, x *float32, s float32) float32 // exp(x[i]-s), and their sum
	ExpOnlySum    func(n int, x *float32, s float32) float32      // the sum alone
	ExpScale      RowFuncST                                       // exp(x[i]-s) * t
	ExpSumColumns func(n int, dst, x, peak, sum *float32)         // exp(x[i]-peak[i]), which is added to sum[i]

	// SoftmaxNext sets dst[i] = from[i]*t and to[i] = exp(x[i]-s), whose sum is
	// sum; top is the Largest of later[i].
	SoftmaxNext, SoftmaxNextStream func(n int, dst, from, to, x, later *float32, s, t float32) (top, sum float32)

	// Normalisations. A variant has all of them or none. Deviations adds up
	// x[i]-s and its square; DeviationsAhead also prefetches the row after the
	// next one.
	Deviations, DeviationsAhead func(n int, x *float32, s float32) (sum, squares float32)
	NormScale                   func(n int, dst, x, y *float32, s, t float32)    // (x[i]-s) * t * y[i]
	NormBias, NormBiasStream    func(n int, dst, x, y, z *float32, s, t float32) // (x[i]-s) * t * y[i] + z[i]

	// NormNext is NormBias, and the sums of next[i]-about and its square.
	NormNext func(n int, dst, x, y, z, next *float32, s, t, about float32) (sum, squares float32)

	// Stores past the caches. A variant has both or none.
	Stream RowFunc // copies n times 32 elements to dst, which begins at a multiple of 32 bytes; Fence must follow
	Fence  func()  // orders these stores before later ones

	// Conversions of n times eight 16-bit floats.
	WidenF16, WidenBF16   func(n int, dst *float32, x *uint16)
	NarrowF16, NarrowBF16 func(n int, dst *uint16, x *float32)
}

// Loops over a row of n elements, with up to two scalars.
type (
	RowFunc   func(n int, dst, x *float32)
	RowFunc2  func(n int, dst, x, y *float32)
	RowFuncS  func(n int, dst, x *float32, s float32)
	RowFuncST func(n int, dst, x *float32, s, t float32)
)

// longRow is the length from which rows tend to come from memory.
const longRow = 1 << 10

// A loop in two forms. Long is for rows of longRow elements or more, which tend
// to come from memory: vectors of 64 bytes are read from memory more slowly
// than vectors of 32, and reading takes most of the time of functions of a few
// instructions.
type (
	Row   struct{ Short, Long RowFunc }
	Row2  struct{ Short, Long RowFunc2 }
	RowS  struct{ Short, Long RowFuncS }
	RowST struct{ Short, Long RowFuncST }
)

// Loops by function.
type (
	UnaryRows    [NumUnary]Row
	UnaryRowsS   [NumUnary]RowS
	UnaryRowsST  [NumUnary]RowST
	UnaryStreams [NumUnary]RowFunc
	BinaryRows   [NumBinary]Row2
	BinaryRowsS  [NumBinary]RowS
)

// GemmLoops are the loops of float32 matrix products.
type GemmLoops struct {
	Width       int           // columns of a panel of B: two vectors
	Tiles       []GemmTile    // indexed by the number of rows
	Prefetching []GemmTile    // for few rows: these prefetch, where Tiles do not
	Packing     []GemmPacking // these pack B while they compute
	PacksParts  bool          // Packing takes panels narrower than Width, too

	// Few rows and panels of 16-bit floats, as those of Tiles.
	TilesF16, TilesBF16 []GemmHalfTile

	Axpy8, Axpy1 GemvFunc // add to out the products of eight or one x[i] and a row of b
	Dot4, Dot1   GemvFunc // add to four or one out[i] the product of x and a row of b
}

type (
	// GemmTile computes a tile of C, of which nr columns are stored: the
	// product of rows of a, lda apart, and the panel b of depth rows. It adds
	// the rows at from, unless from is nil, and then replaces negative results
	// by zero if relu is set. It may prefetch rows from next on, step apart.
	// Distances are in bytes.
	GemmTile func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, next *float32, step int, from *float32, ldfrom int, relu bool)

	// GemmHalfTile is GemmTile for a panel of 16-bit floats. It prefetches
	// nothing.
	GemmHalfTile func(depth int, a *float32, lda int, b *uint16, c *float32, ldc int, nr int, from *float32, ldfrom int, relu bool)

	// GemmPacking is GemmTile that packs the panel b from rows of src.
	GemmPacking func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, src *float32, ldb int, from *float32, ldfrom int, relu bool)

	// GemvFunc reads rows of b that are ldb bytes apart.
	GemvFunc func(n int, out, x, b *float32, ldb int)
)

// ByteLoops are the loops of products of bytes, and of quantisation.
type ByteLoops struct {
	Width int        // columns of a panel; 0 if there are no loops
	Step  int        // neighbours of K that a panel holds together: 4, or 2 if A is widened to 16 bits
	Tiles []ByteTile // indexed by the number of rows
	Pack  func(depth int, dst, b *byte, ldb int, flip uint64, sums *int32)

	// RequantRows narrows n vectors of Lanes sums of each row, by a scale per
	// column; distances of rows are in bytes.
	Lanes       int
	RequantRows func(rows, n int, dst *byte, ldd int, x *int32, ldx int, scale *float32, lo, hi float32, zero int32)

	// Convolutions. Filters sums for some filters, at most MaxFilters, and
	// panels of Width positions; each weight has 4/Step bytes. HalfFilters and
	// QuarterFilters have panels of half and of a quarter as many, and may be
	// nil. Interleave1 writes rows of an image from each byte, Interleave2 from
	// every second one. CopyRows copies rows of n bytes of some planes.
	Filters                  func(call ByteConvTile, filters int)
	HalfFilters              func(call ByteConvTile, filters int)
	QuarterFilters           func(call ByteConvTile, filters int)
	MaxFilters               int
	Depthwise                func(call ByteDepthwise)
	Taps                     func(call ByteTaps) // nil where bytes are not picked from whole vectors
	Interleave1, Interleave2 func(call ByteImage)
	CopyRows                 func(planes, rows, n int, dst *byte, dstPlane, dstRow int, src *byte, srcPlane, srcRow int)

	// Rows. EvenRows copies every second byte of rows, at least 16 of each.
	// MaxU8 and MaxI8 are for n times 32 bytes. Widen makes n times 16 bytes,
	// with flip taken, numbers of 16 bits, and returns their sum; it is nil
	// where rows of A are not widened.
	EvenRows      func(rows, n int, dst *byte, dstRow int, src *byte, srcRow int)
	MaxU8, MaxI8  func(n int, dst, x, y *byte)
	Add, Multiply func(call ByteArithmetic)
	Lookup        func(n int, dst, x, table *byte) // takes bytes from a table of 256
	Widen         func(n int, dst, x *byte, flip uint64) (sum int)

	// For n times eight elements.
	Quantize                   func(n int, dst *byte, x *float32, scale, lo, hi float32, zero int32)
	DequantizeU8, DequantizeI8 func(n int, dst *float32, x *byte, scale float32, zero int32)
}

// ByteTile computes a tile of sums of products of depth groups of unsigned a
// and signed b, of which nr columns are stored, and adds the rows at from.
// Distances are in bytes.
type ByteTile func(depth int, a *byte, lda int, b *byte, c *int32, ldc int, nr int, from *int32, ldfrom int)

// ConvLoops are the loops of float32 convolutions and pools. Arguments are
// passed by value: passed by address they would be on the heap.
type ConvLoops struct {
	Lanes      int // elements of a vector: whole vectors are read and written
	PatchWidth int // columns of a panel of patches

	// Patches packs one tap of neighbouring patches: for each of some rows of
	// some planes, a piece of the row, which may extend beyond its ends.
	Patches func(planes, rows int, dst *float32, step int, src *float32, at, rowStep, planeStep, lo, hi, n int)

	// Tiles computes n positions, at most Positions, and a vector or two of
	// channels. Leave transposes the sums into planes.
	Tiles     func(call ConvTile, vectors, n int)
	Leave     func(call ConvLeave)
	Positions int

	// DepthTiles is for a vector or two of channels, and so is SumBiases.
	DepthTiles func(call DepthTile, vectors int)
	SumBiases  func(call SumBias, vectors int)

	// RowTiles computes n channels, at most Channels, and a vector or two of
	// positions.
	RowTiles func(call ConvRowTile, vectors, n int)
	Channels int

	Windows func(kind WindowKind, call WindowCall)
	Pads    func(kind PadKind, call PadCall)

	// TallWindows is Windows for WindowSum of some heights of columns and
	// distances of rows' windows; it returns false for others. Offsets and
	// Weights are those of the first tap of each column, of which Taps is the
	// number.
	TallWindows func(height, stride int, call WindowCall) bool

	Winograd WinogradTable // by algorithm; a variant has all loops or none
}

// CompressedLoops are the loops of compressed floats.
type CompressedLoops struct {
	Lanes  int // floats of a vector
	Expand func(vectors int, dst *float32, src *byte, table ExpandTable)
}

// ExpandTable has every exponent twice, shifted to its place in a float, so
// that the highest bit of an index has no effect.
type ExpandTable [2 * ExponentCodes]uint32

// ExponentCodes is the number of exponents that have a code.
const ExponentCodes = 8

// Sizes of the portable variant: columns of a panel, floats of a vector of
// compressed ones, and columns of a panel of weights of few bits.
const (
	PortableNR          = 8
	PortableExpandLanes = 8
	PortableNbitsLanes  = 8
)
