package kernel

// Variant is what the kernels are for one set of instructions: a table of innermost loops, and the sizes that go with them. Package x86
// has those of its architecture, written by the generator; Portable has none.
//
// A loop takes addresses and counts, and checks nothing. What it reads and writes is whole rows, or as many whole groups or vectors as its
// field says. A loop that is nil is one that the variant does not have: the kernel then goes through its own loop in Go, which is the
// reference for all of them.
//
// A variant never changes, so any number of goroutines may use it, and several may be used side by side. What was prepared or packed with
// one is for that one alone.
type Variant struct {
	Name       string
	Rows       RowLoops
	Elements   ElementLoops
	Gemm       GemmLoops
	Bytes      ByteLoops
	Conv       ConvLoops
	Compressed CompressedLoops
}

// Portable is the variant without assembly, which every machine runs.
var Portable = &Variant{
	Name:       "portable",
	Gemm:       GemmLoops{Width: PortableNR},
	Conv:       ConvLoops{Lanes: 1},
	Compressed: CompressedLoops{Lanes: PortableExpandLanes},
}

// AsmElements is how much of a row one call of assembly takes. Assembly cannot be preempted, and a collection waits for it: a call must not
// last longer than some ten microseconds.
const AsmElements = 16 << 10

// RowLoops are loops over rows of float32.
type RowLoops struct {
	Bytes int // of a vector; 0 if there are no loops

	// Elementwise functions: of one operand, with one and two scalars; of two operands, of which one may be a scalar.
	Unary              UnaryRows
	UnaryS             UnaryRowsS
	UnaryST            UnaryRowsST
	BinaryVV           BinaryRows
	BinaryVS, BinarySV BinaryRowsS

	// Powers. They go with those of BinaryVV and BinarySV that multiply and divide, with Min and the square root.
	Cube          RowFunc // x^3
	ThreeQuarters RowFunc // x^(3/4), for positive numbers

	// UnaryStream has the functions that write past the caches themselves: storing while they compute costs them nothing. dst begins at a
	// multiple of a vector's size.
	UnaryStream UnaryStreams

	Sum     func(n int, x *float32) float64            // of x[i]
	Squares func(n int, x *float32, s float32) float64 // of (x[i]-s)^2
	Max     func(n int, x *float32, s float32) float32 // of s and x[i]; NaN if one of x[i] is
	Min     func(n int, x *float32, s float32) float32

	// Softmax. These are there together, with Max and those of BinaryVS that multiply and subtract, or not at all.
	SoftmaxRow    RowFunc                                         // exp(x[i]) / sum(exp(x[j])); n is not 0
	ExpSum        func(n int, dst, x *float32, s float32) float32 // exp(x[i]-s), and their sum
	ExpOnlySum    func(n int, x *float32, s float32) float32      // the sum alone
	ExpScale      RowFuncST                                       // exp(x[i]-s) * t
	ExpSumColumns func(n int, dst, x, peak, sum *float32)         // exp(x[i]-peak[i]), which is added to sum[i]

	// SoftmaxNext sets dst[i] = from[i]*t and to[i] = exp(x[i]-s), whose sum is sum; top is the Largest of later[i].
	SoftmaxNext, SoftmaxNextStream func(n int, dst, from, to, x, later *float32, s, t float32) (top, sum float32)

	// Normalisations are there together or not at all. Deviations adds up x[i]-s and its square; the one that looks ahead prefetches what comes after the next row.
	Deviations, DeviationsAhead func(n int, x *float32, s float32) (sum, squares float32)
	NormScale                   func(n int, dst, x, y *float32, s, t float32)    // (x[i]-s) * t * y[i]
	NormBias, NormBiasStream    func(n int, dst, x, y, z *float32, s, t float32) // (x[i]-s) * t * y[i] + z[i]

	// NormNext is NormBias, and the sums of next[i]-about and its square.
	NormNext func(n int, dst, x, y, z, next *float32, s, t, about float32) (sum, squares float32)

	// Stream and Fence are there together or not at all.
	Stream RowFunc // copies n times 32 elements past the caches to dst, which begins at a multiple of 32 bytes; Fence must follow
	Fence  func()  // puts what was streamed before what is written next

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

// A loop in two forms. Long is for rows from longRow elements on: 64 bytes at a time are read from memory more slowly than 32, and for
// functions of a few instructions that is what counts.
type (
	Row   struct{ Short, Long RowFunc }
	Row2  struct{ Short, Long RowFunc2 }
	RowS  struct{ Short, Long RowFuncS }
	RowST struct{ Short, Long RowFuncST }
)

// Loops by what they compute.
type (
	UnaryRows    [NumUnary]Row
	UnaryRowsS   [NumUnary]RowS
	UnaryRowsST  [NumUnary]RowST
	UnaryStreams [NumUnary]RowFunc
	BinaryRows   [numBinary]Row2
	BinaryRowsS  [numBinary]RowS
)

// GemmLoops are those of float32 matrix products.
type GemmLoops struct {
	Width       int           // of a panel of B: two vectors
	Tiles       []GemmTile    // by their number of rows
	Prefetching []GemmTile    // of a few rows, for which Tiles do not prefetch
	Packing     []GemmPacking // which pack B while they compute
	PacksParts  bool          // Packing takes panels that are narrower than Width

	Axpy8, Axpy1 GemvFunc // add to out the products of eight or one x[i] and a row of b
	Dot4, Dot1   GemvFunc // add to four or one out[i] the product of x and a row of b
}

type (
	// GemmTile computes a tile of C, of which nr columns are stored: the product of rows of a, lda apart, and the panel b of depth rows,
	// with what lies at from added, unless that is nil, and then the greater of zero taken if relu. It may prefetch rows from next on,
	// step apart. Distances count bytes.
	GemmTile func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, next *float32, step int, from *float32, ldfrom int, relu bool)

	// GemmPacking is GemmTile that packs the panel b from rows of src.
	GemmPacking func(depth int, a *float32, lda int, b *float32, c *float32, ldc int, nr int, src *float32, ldb int, from *float32, ldfrom int, relu bool)

	// GemvFunc reads rows of b that are ldb bytes apart.
	GemvFunc func(n int, out, x, b *float32, ldb int)
)

// ByteLoops are those of products of bytes and of quantisation.
type ByteLoops struct {
	Width int        // of a panel, 0 where there are no loops
	Step  int        // how many neighbours of K a panel holds together, and whether A is widened to 16 bits: where that is two
	Tiles []ByteTile // by their number of rows
	Pack  func(depth int, dst, b *byte, ldb int, flip uint64, sums *int32)

	Lanes   int // of Requant
	Requant func(n int, dst *byte, x *int32, scale, lo, hi float32, add, zero int32)

	// For n times eight elements.
	Quantize                   func(n int, dst *byte, x *float32, scale, lo, hi float32, zero int32)
	DequantizeU8, DequantizeI8 func(n int, dst *float32, x *byte, scale float32, zero int32)
}

// ByteTile computes a tile of sums of depth groups of unsigned a and signed b, of which nr columns are stored, with what lies at from added.
// Distances count bytes.
type ByteTile func(depth int, a *byte, lda int, b *byte, c *int32, ldc int, nr int, from *int32, ldfrom int)

// ConvLoops are those of float32 convolutions and pools. Arguments come by value: those behind an address would be on the heap.
type ConvLoops struct {
	Lanes      int // elements of a vector: whole vectors are read and written
	PatchWidth int // of a panel of patches

	// Patches packs one tap of neighbouring patches: for some rows of some planes, a piece of the row that may lie beyond its ends.
	Patches func(planes, rows int, dst *float32, step int, src *float32, at, rowStep, planeStep, lo, hi, n int)

	// Tiles computes n positions, at most Positions, and a vector or two of channels. Leave transposes the sums into planes.
	Tiles     func(call ConvTile, vectors, n int)
	Leave     func(call ConvLeave)
	Positions int

	// RowTiles computes n channels, at most Channels, and a vector or two of positions.
	RowTiles func(call ConvRowTile, vectors, n int)
	Channels int

	Windows func(kind WindowKind, call WindowCall)
	Pads    func(kind PadKind, call PadCall)
}

// CompressedLoops are those of compressed floats.
type CompressedLoops struct {
	Lanes  int // floats of a vector
	Expand func(vectors int, dst *float32, src *byte, table ExpandTable)
}

// ExpandTable has every exponent twice, as it stands in a float, so that an index may have a bit too many.
type ExpandTable [2 * ExponentCodes]uint32

// ExponentCodes is how many exponents have a code.
const ExponentCodes = 8

// Sizes of the portable variant: columns of a panel, and floats of a vector of compressed ones.
const (
	PortableNR          = 8
	PortableExpandLanes = 8
)
