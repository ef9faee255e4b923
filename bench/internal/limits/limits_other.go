//go:build !amd64

package limits

func highest() Level { return Portable }

func fma(_ Level, loops int) int {
	operations, _ := fmaPlain(loops)
	return operations
}

func readFloats(x []float32) float32 { return readPlain(x) }

func copyFloats(dst, src []float32, _ bool) { copyPlain(dst, src) }

func scaleFloats(x []float32, s float32) { scalePlain(x, s) }

func triadFloats(dst, a, b []float32, s float32, _ bool) { triadPlain(dst, a, b, s) }
