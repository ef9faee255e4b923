package plan

// Formulas say what runs of a model take for ranges of sizes: in figures for
// each size that was planned, and as expressions over the dimensions, by
// structure. A structure is a final program that holds for many sizes.
type Formulas struct {
	Dims  []DimRange `json:"dims"`  // the open dimensions, and those that were given one size
	Sizes int        `json:"sizes"` // sets of sizes that were planned

	// Every says that every set of sizes in the ranges was planned. If not,
	// those of Lines were.
	Every bool `json:"every"`

	Structures []StructureFormulas `json:"structures"`
	Pinned     []Exception         `json:"pinned"` // programs for one set of sizes alone
	Refused    []Exception         `json:"refused"`
	Lines      []Line              `json:"lines"`
	Worst      FiguresAt           `json:"worst"` // of all that were planned, by arena, scratch, inputs and outputs
}

// DimRange is the sizes that a dimension takes.
type DimRange struct {
	Name string `json:"name"`
	Lo   int    `json:"lo"`
	Hi   int    `json:"hi"`
}

// Exception counts sets of sizes that have no structure, by the reason.
type Exception struct {
	Reason string `json:"reason"`
	Sizes  int    `json:"sizes"`
	First  string `json:"first"`
}

// StructureFormulas are the expressions of one structure. Each was compared
// with the plan at every size of the structure that was planned. One that is
// empty was not derived.
type StructureFormulas struct {
	Sizes   int    `json:"sizes"` // sets of sizes that are instances of it
	First   string `json:"first"` // of them
	Inputs  string `json:"inputs"`
	Outputs string `json:"outputs"`
	Weights string `json:"weights"` // weights and constants

	// Moments are the times of a run at which, for some size that was planned,
	// the most bytes of the arena live. The arena's lower bound is the largest
	// of them.
	Moments []Moment `json:"moments"`

	// Exact says that the largest moment is the lower bound. If not, parts of
	// values live that may begin anywhere, and it is at least the bound.
	Exact bool `json:"exact"`

	// Over is the largest arena in relation to the largest moment, 1 where each
	// arena has the size of the formula.
	Over float64 `json:"over"`

	// Underived names the calls whose sizes have no expression.
	Underived []string `json:"underived"`
}

// Moment is a time of a run at which the arena may be fullest.
type Moment struct {
	Where  string   `json:"where"`  // the call that writes its result then
	Bytes  string   `json:"bytes"`  // the expression
	Values []string `json:"values"` // that live, the largest first, each with its expression
	Sizes  int      `json:"sizes"`  // sets of sizes at which it is the worst
	First  string   `json:"first"`  // of them
}

// Line is the figures along one dimension, while the others stay.
type Line struct {
	Dim    string      `json:"dim"`
	Others string      `json:"others"` // "batch = 8", empty if there are none
	Points []FiguresAt `json:"points"`

	// Scratch and Weights are what holds between breakpoints; each figure is
	// one of a point.
	Breakpoints []Breakpoint `json:"breakpoints"`
	Scratch     []Segment    `json:"scratch"` // bytes per thread
}

// FiguresAt are the figures of the plan for one set of sizes.
type FiguresAt struct {
	Size       int    `json:"size"`  // of the line's dimension
	Sizes      string `json:"sizes"` // of all dimensions
	Structure  int    `json:"structure"`
	Moment     int    `json:"moment"` // of the structure, -1 if it has no formulas
	Arena      int64  `json:"arena_bytes"`
	LowerBound int64  `json:"lower_bound_bytes"`
	Scratch    int64  `json:"scratch_per_thread"`
	IO         int64  `json:"io_bytes"`
	Weights    int64  `json:"weight_bytes"`
	PerRun     int64  `json:"per_run"` // arena, scratch of all threads, inputs and outputs
	Failed     string `json:"failed,omitempty"`
}

// Breakpoint is a size from which on something else holds than below it.
type Breakpoint struct {
	Size int    `json:"size"`
	What string `json:"what"`
}

// Segment is a run of sizes of a line whose figure is Base + Slope·(size -
// From), at each of them.
type Segment struct {
	From  int   `json:"from"`
	To    int   `json:"to"`
	Base  int64 `json:"base"`
	Slope int64 `json:"slope"`
}

// Segments splits figures, one for each of ascending sizes, into runs on which
// they are a linear function: each run is as long as it can be, from the left.
func Segments(sizes []int, bytes []int64) []Segment {
	var list []Segment
	for i := 0; i < len(sizes); {
		s := Segment{From: sizes[i], To: sizes[i], Base: bytes[i]}
		j := i + 1
		if j < len(sizes) {
			run, rise := int64(sizes[j]-sizes[i]), bytes[j]-bytes[i]
			// Two sizes alone always lie on a line: that says nothing unless a
			// third does too.
			follows := rise == 0 || j+1 < len(sizes) && (bytes[j+1]-bytes[i])*run == rise*int64(sizes[j+1]-sizes[i])
			if follows && rise%run == 0 {
				s.Slope = rise / run
				for j < len(sizes) && bytes[j] == s.Base+s.Slope*int64(sizes[j]-sizes[i]) {
					s.To = sizes[j]
					j++
				}
			}
		}
		list = append(list, s)
		i = j
	}
	return list
}
