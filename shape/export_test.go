package shape

// TestAllMost is the largest number of entries of which sweeps test all.
const TestAllMost = testAllMost

// Settle removes unreachable shapes and holds the others strongly, as values
// that have survived some collections, or else weakly. They stay so until
// release is called: in benchmarks a collection would change the case
// otherwise.
func Settle(strongly bool) (release func()) {
	Clear()
	global.sweeping.Lock()
	if !strongly {
		global.shapes.sweep(weaken)
	}
	return global.sweeping.Unlock
}

// Pause waits for a running sweep and prevents others from starting until
// resume.
func Pause() (resume func()) {
	global.sweeping.Lock()
	return global.sweeping.Unlock
}

// Make returns a shape that is not interned.
func Make(sizes []int) *Shape {
	n, err := count(sizes)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return makeStatic(sizes, n)
}
