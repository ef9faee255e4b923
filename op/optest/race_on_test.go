//go:build race

package optest_test

const raceDetector = true
