package cpu

import (
	"fmt"
	"os"
	"strings"
)

// Tier is a set of instructions for which kernels exist. Within one
// architecture a higher tier contains the lower ones.
type Tier uint8

const (
	Portable Tier = iota // plain Go
	NEON                 // arm64: Advanced SIMD
	AVX2                 // amd64: AVX2, FMA and F16C
	AVX512               // amd64: AVX2's, and AVX-512 F, BW, DQ and VL
)

var names = [...]string{Portable: "portable", NEON: "neon", AVX2: "avx2", AVX512: "avx512"}

// String returns the name that TENURE_CPU takes.
func (t Tier) String() string {
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("tier(%d)", uint8(t))
}

// Knob is the name of the environment variable that lowers Level.
const Knob = "TENURE_CPU"

var level, errKnob = choose(detect(), archTiers, os.Getenv(Knob), raceBuild)

// Level returns the highest tier that kernels may use.
func Level() Tier { return level }

// Err returns an error if TENURE_CPU has a value that is not a tier of this
// architecture, else nil.
func Err() error { return errKnob }

// choose returns the tier to use on a machine that can do detected and whose
// architecture has the given tiers.
func choose(detected Tier, arch []Tier, knob string, race bool) (Tier, error) {
	chosen := detected
	if race {
		chosen = Portable
	}
	if knob == "" {
		return chosen, nil
	}
	var want []string
	for _, t := range arch {
		if knob == t.String() {
			return min(chosen, t), nil
		}
		want = append(want, t.String())
	}
	return chosen, fmt.Errorf("%s: got %q, want %s", Knob, knob, strings.Join(want, " or "))
}
