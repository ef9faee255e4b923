package kernel

// variant is one implementation of the dispatch points: the package's function variables that hold the innermost loops. install sets all
// of them, beginning with those of the portable variant, so that a variant may leave out what it has no code for.
type variant struct {
	name    string
	install func()
}

// variants that this machine can run, slowest first.
var variants = append([]variant{{"portable", installPortable}}, machineVariants()...)

var active string

func init() { UseVariant(variants[len(variants)-1].name) }

func installPortable() {
	unaryRow = portableUnaryRows
	binaryRowVV = portableBinaryVV
	binaryRowVS = portableBinaryVS
	binaryRowSV = portableBinarySV
	gemmNR = portableNR
	gemmPanel = portableGemmPanel
	gemmAskPanel = portableGemmAskPanel
	gemmPackPanel = portableGemmPackPanel
	gemvAxpy = portableGemvAxpy
	gemvDot = portableGemvDot
	expandLanes, expandFloats = portableExpandLanes, portableExpandFloats
	byteNR, byteStep, bytePanel = 0, 0, nil
	byteGroups, narrowSums = nil, noSums
	quantizeRow, dequantizeRow = nil, nil
	patchRows = nil
	convTiles, convLeaves, convRowTiles = nil, nil, nil
	windowRows, padRows, rowLanes = portableWindowRows, portablePadRows, 1
	rowSum = portableSum
	rowSquares = portableSquares
	rowMax = portableMax[float32]
	rowMin = portableMin[float32]
	rowMoments = portableMoments
	rowSoftmax = portableSoftmax
	expColumns = portableExpColumns
	rowNorm = portableNorm
	rowsNorm, rowsSoftmax = nil, nil
	streamRow = portableStream
	streamEnd = func() {}
	unaryStream = [numUnary]func(dst, src []float32) bool{}
	turnWords, turnHalves, turnBytes = nil, nil, nil
	vectorHalves = false
	lanes = laneSet{}
}

// Variants names what this machine can run, slowest first.
func Variants() []string {
	names := make([]string, len(variants))
	for i, v := range variants {
		names[i] = v.name
	}
	return names
}

// Variant names the one in use: the fastest, unless UseVariant chose another.
func Variant() string { return active }

// UseVariant switches, for tests and benchmarks; no kernel may be running, and what was prepared or packed before is void.
func UseVariant(name string) {
	for _, v := range variants {
		if v.name == name {
			v.install()
			active = name
			return
		}
	}
	bug("no variant %q, have %q", name, Variants())
}
