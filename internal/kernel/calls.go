package kernel

// ConvTile has the arguments of the innermost loop of a convolution: sums of
// depth products, for n positions in two halves and one or two vectors of
// channels.
type ConvTile struct {
	Offsets    *int32 // in bytes, from x: where each product's input lies for the first position
	Depth      int
	X          *float32
	Step       int      // bytes from a position to the next
	Jump       int      // bytes from the first position to that which begins the second half, (n+1)/2
	Weights    *float32 // whole vectors of channels are read
	WeightStep int      // bytes from a product's weights to those of the next
	Sums       *float32
	SumStep    int // bytes
	Add        int // not 0: add to sums, else overwrite
}

// ConvLeave has the arguments of the loop that transposes sums, of up to a
// vector of channels, into planes. It reads the sums of whole vectors of
// positions.
type ConvLeave struct {
	Sums         *float32
	SumStep      int // bytes
	Positions    int
	Out          *float32
	OutStep      int // bytes from plane to plane
	Channels     int
	Residual     *float32 // nil if there is none
	ResidualStep int
	Bias         *float32 // nil if there is none
	Low, High    float32
}

// DepthTile has the arguments of the innermost loop of a depthwise convolution
// of rows of channels, one or two vectors of them: the sums of a row of
// positions.
type DepthTile struct {
	X         *float32
	Step      int    // bytes from a position's elements to those of the next
	Offsets   *int32 // in bytes, from X: where each tap's elements lie for the first position
	Taps      int
	Weights   *float32 // a row of channels for each tap
	Sums      *float32 // row by row
	Positions int      // at least 1
}

// SumBias has the arguments of the loop that adds a bias to sums which are rows
// of channels, and clamps them.
type SumBias struct {
	Sums      *float32
	Positions int // at least 1
	Bias      *float32
	Low, High float32
}

// ConvRowTile has the arguments of the innermost loop of a convolution by rows:
// sums of depth products, for n channels and one or two vectors of positions.
type ConvRowTile struct {
	Offsets    *int32 // in bytes, from x
	Depth      int
	X          *float32
	Weights    *float32 // n for each product
	WeightStep int      // bytes from a product's weights to those of the next
	Out        *float32
	OutStep    int
	Add        *float32 // the addend: a residual or earlier sums; nil if there is none
	AddStep    int
	Bias       *float32 // nil if there is none
	Cols       int      // of all vectors
	Low, High  float32
}

// WindowCall has the arguments of the loop over windows, which computes rows of
// outputs.
type WindowCall struct {
	Src          *float32 // of the first output; whole vectors are read
	RowStep      int      // bytes from the source of a row to the next row's
	Offsets      *int32   // bytes from an output's source to its taps
	Taps         int
	Weights      *float32
	Out          *float32
	OutStep      int
	Rows, Cols   int      // at least 1
	Residual     *float32 // nil if there is none
	ResidualStep int
	Scale        *float32 // of WindowMean: a factor per column
	Bias         float32
	Low, High    float32
	SourceStep   int // of TallWindows: bytes from a row of the source to the next
}

// WindowKind is the function of the taps.
type WindowKind uint8

const (
	WindowSum  WindowKind = iota // min(max(bias + weighted sum + residual, low), high)
	WindowMax                    // NaN if any is
	WindowMean                   // the sum times scale
)

// PadCall has the arguments of the loop that copies rows: fill, n elements,
// fill up to width. It writes whole vectors.
type PadCall struct {
	Src                       *float32
	SrcStep                   int // bytes
	Dst                       *float32
	DstStep                   int
	Rows, N                   int // rows at least 1
	Left, Width               int
	Dst1                      *float32 // of pairs: where every second element goes
	Left1                     int
	Fill, Scale, Shift, Floor float32
}

// PadKind is the function of the elements that are copied.
type PadKind uint8

const (
	PadPlain  PadKind = iota
	PadAffine         // max(x*scale + shift, floor)
	PadPairs          // taken apart by two
)

// ByteConvTile has the arguments of the innermost loop of a convolution of
// bytes: sums of depth groups of unsigned inputs and signed weights, for some
// filters and the positions of some panels, which are all stored.
type ByteConvTile struct {
	Offsets  *int32 // in bytes, from X: where each group's inputs lie for the first position
	Depth    int
	X        *byte
	Weights  *byte // of the filters, group by group
	Out      *byte
	OutStep  int      // bytes from filter to filter
	From     *int32   // numbers to add to the sums, a row of all positions per filter; nil if there are none
	FromStep int      // bytes
	Add      *int32   // per filter
	Scale    *float32 // per filter; nil if the results are the sums

	// The bytes are sum*scale, rounded, moved by the words of Move, saturated
	// to unsigned ones, and Flip, eight of a kind, is taken.
	Move, Flip uint64

	Panels         int // of positions, with the same numbers to add
	XNext, OutNext int // bytes from panel to panel
}

// ByteImage has the arguments of the loops that write rows of an image, of some
// groups of channels: pads, Vectors times 16 places with one byte each of
// ByteLoops.Step rows of the input, of which Flip, eight of a kind, is taken,
// and pads. Up to a vector is written behind each row, before the next one.
type ByteImage struct {
	Dst           *byte
	DstStep       int      // bytes from row to row
	X             [4]*byte // rows of the input
	XStep         int
	Rows, Vectors int
	Left          int // bytes of pads before the places
	RightAt       int // where pads begin behind them
	Right         int // how many bytes there are
	Pad, Flip     uint64

	Groups, DstGroup, XGroup int // how many, and the bytes from group to group
}

// ByteDepthwise has the arguments of the loop of depthwise convolutions of
// bytes. Weights are signed bytes, four to a number, or two of 16 bits, as
// ByteLoops.Step says.
type ByteDepthwise struct {
	Offsets *int32 // in bytes, from X: where the taps of each number of weights begin for the first place
	Depth   int
	X       *byte // 64 bytes are read from each place
	XStep   int   // bytes from a vector of places to the next
	RowStep int   // bytes from row to row
	Rows    int
	Vectors int // of a row, which are stored whole
	Weights *byte
	Out     *byte
	OutStep int    // bytes from row to row
	Picks   *byte  // two vectors: the words of lanes, and the bytes of places in a lane
	Flip    uint64 // taken from x, where numbers have four taps
	Narrow  int    // 0 if the results are the sums

	// The bytes are min(max(sum*scale, low), high), rounded, plus zero.
	Scale, Low, High float32
	Add, Zero        int32
}

// ByteTaps has the arguments of depthwise convolutions of bytes that pick the
// taps of a vector of places from 64 bytes of the input. The planes of the
// input and of the result are XStep and OutStep bytes apart. For each plane the
// weights are Depth numbers of four signed bytes, then the addend of the sums,
// and their factor, a float32. The bytes are rounded, moved by the words of
// Move, saturated to unsigned ones, and FlipOut, eight of a kind, is taken, as
// Flip is from what was picked.
//
// Patterns are vectors of bytes: 64 and more is a byte of the input, less is
// the pad. Program has, for four vectors of places or one, by number of weights
// and vector: where the input begins that it picks from, from the row's, and
// which pattern, in bytes; then, for each vector, where its 16 results go, from
// the row's, and a number without a meaning if there is one vector.
type ByteTaps struct {
	X         *byte
	XStep     int
	Out       *byte
	OutStep   int
	Planes    int
	Segments  *ByteSegment // of a plane; the last one has no rows
	Program   *int32
	Patterns  *byte
	Weights   *byte
	Depth     int
	Pad, Flip uint64
	FlipOut   uint64
	Move      uint64
}

// ByteSegment is some rows of places with one program: where the input and the
// results of the first row begin, and how far the next ones are from it. The
// vectors of a row are some times four, and then some ones.
type ByteSegment struct {
	Rows, Fours, Ones int
	X, Out            int
	XStep, OutStep    int
	Program           int // its first number
}

// ByteArithmetic has the arguments of the loops of sums and products of
// quantised numbers. A sum is a*RatioA + b*RatioB + Rest, a product
// a*b*RatioA + Rest, where a and b are the bytes with the flips, eight of a
// kind, taken, less the zeros. The result is rounded, moved by the words of
// Offset, saturated to an unsigned byte, and its flip taken. All floats are
// finite, and small enough for all terms of a sum to be.
type ByteArithmetic struct {
	Out, A, B             *byte
	N                     int
	One                   int // 1 if b is one byte for all
	FlipA, FlipB, FlipOut uint64
	RatioA, RatioB, Rest  float32
	ZeroA, ZeroB          int32
	Offset                uint32
}
