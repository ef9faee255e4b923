package shape

// Few is the number of entries up to which all are held weakly now and then.
const Few = few

// Settle takes out what nothing reaches, holds the rest strongly, as what has
// survived some collections is held, or else weakly, and keeps it so until
// release. For timings: without it a collection now and then changes the case.
func Settle(strongly bool) (release func()) {
	Clear()
	global.sweeping.Lock()
	if !strongly {
		global.shapes.sweep(weaken)
	}
	return global.sweeping.Unlock
}

// Pause waits for a sweep that runs and lets no other begin until resume.
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
