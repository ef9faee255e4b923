package kernel

// ConvTile is a call of the innermost loop: for n positions in two halves, and a vector or two of channels, sums of depth products.
type ConvTile struct {
	offsets *int32 // in bytes, from x: where each product's input lies for the first position
	depth   int
	x       *float32
	step    int // bytes from a position to the next
	jump    int // bytes from the first position to that which begins the second half, (n+1)/2
	weights *float32
	sums    *float32
	sumStep int // bytes
	add     int // not 0: add to sums, else overwrite
}

// ConvLeave is a call that transposes sums of up to a vector of channels into planes. Sums are read for whole vectors of positions.
type ConvLeave struct {
	sums         *float32
	sumStep      int // bytes
	positions    int
	out          *float32
	outStep      int // bytes from plane to plane
	channels     int
	residual     *float32 // nil if there is none
	residualStep int
	bias         *float32 // nil if there is none
	low, high    float32
}

// ConvRowTile is a call of the innermost loop: for n channels, and a vector or two of positions, sums of depth products.
type ConvRowTile struct {
	offsets   *int32 // in bytes, from x
	depth     int
	x         *float32
	weights   *float32 // n for each product
	out       *float32
	outStep   int
	add       *float32 // what is added: a residual or earlier sums; nil if nothing is
	addStep   int
	bias      *float32 // nil if there is none
	cols      int      // of all vectors
	low, high float32
}

// WindowCall computes rows of outputs.
type WindowCall struct {
	src          *float32 // of the first output; whole vectors are read
	rowStep      int      // bytes from the source of a row to the next row's
	offsets      *int32   // bytes from an output's source to its taps
	taps         int
	weights      *float32
	out          *float32
	outStep      int
	rows, cols   int      // at least 1
	residual     *float32 // nil if there is none
	residualStep int
	scale        *float32 // of WindowMean: a factor per column
	bias         float32
	low, high    float32
}

// WindowKind is what is made of the taps.
type WindowKind uint8

const (
	WindowSum  WindowKind = iota // min(max(bias + weighted sum + residual, low), high)
	WindowMax                    // NaN if any is
	WindowMean                   // the sum times scale
)

// PadCall copies rows: fill, n elements, fill up to width. Whole vectors are written.
type PadCall struct {
	src                       *float32
	srcStep                   int // bytes
	dst                       *float32
	dstStep                   int
	rows, n                   int // rows at least 1
	left, width               int
	dst1                      *float32 // of pairs: where every second element goes
	left1                     int
	fill, scale, shift, floor float32
}

// PadKind is what happens to rows that are copied.
type PadKind uint8

const (
	PadPlain  PadKind = iota
	PadAffine         // max(x*scale + shift, floor)
	PadPairs          // taken apart by two
)
