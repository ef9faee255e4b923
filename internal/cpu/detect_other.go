//go:build !amd64 && !arm64

package cpu

var archTiers = []Tier{Portable}

func detect() Tier { return Portable }
