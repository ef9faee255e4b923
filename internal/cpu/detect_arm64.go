package cpu

import "golang.org/x/sys/cpu"

var archTiers = []Tier{Portable, NEON}

func detect() Tier {
	if cpu.ARM64.HasASIMD {
		return NEON
	}
	return Portable
}
