//go:build race

package cpu

const raceBuild = true
