package cpu

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	amd64 := []Tier{Portable, AVX2, AVX512}
	arm64 := []Tier{Portable, NEON}
	for _, c := range []struct {
		detected Tier
		arch     []Tier
		knob     string
		race     bool
		want     Tier
		err      string
	}{
		{AVX512, amd64, "", false, AVX512, ""},
		{AVX512, amd64, "avx512", false, AVX512, ""},
		{AVX512, amd64, "avx2", false, AVX2, ""},
		{AVX512, amd64, "portable", false, Portable, ""},
		{AVX2, amd64, "avx512", false, AVX2, ""}, // the knob never raises
		{Portable, amd64, "avx2", false, Portable, ""},
		{NEON, arm64, "", false, NEON, ""},
		{NEON, arm64, "portable", false, Portable, ""},
		{AVX512, amd64, "", true, Portable, ""},
		{AVX512, amd64, "avx512", true, Portable, ""},
		{AVX512, amd64, "AVX2", false, AVX512, `TENURE_CPU: got "AVX2", want portable or avx2 or avx512`},
		{AVX512, amd64, "neon", false, AVX512, `TENURE_CPU: got "neon", want portable or avx2 or avx512`},
		{NEON, arm64, "avx2", false, NEON, `TENURE_CPU: got "avx2", want portable or neon`},
		{AVX2, amd64, "sse", true, Portable, `TENURE_CPU: got "sse", want portable or avx2 or avx512`},
	} {
		got, err := choose(c.detected, c.arch, c.knob, c.race)
		var text string
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("choose(%v, %v, %q, race %v): got %v, %q, want %v, %q", c.detected, c.arch, c.knob, c.race, got, text, c.want, c.err)
		}
	}
}

func TestDetectIsOfThisArchitecture(t *testing.T) {
	if d := detect(); !slices.Contains(archTiers, d) {
		t.Errorf("got %v, want one of %v", d, archTiers)
	}
}

// The flags that the kernel of Linux prints come from another reader of the
// same registers.
func TestDetectAgainstProc(t *testing.T) {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil || !slices.Contains(archTiers, AVX512) {
		t.Skip("needs /proc/cpuinfo of an amd64 machine")
	}
	_, flags, ok := strings.Cut(string(text), "\nflags")
	if !ok {
		t.Skip("/proc/cpuinfo has no flags")
	}
	flags, _, _ = strings.Cut(flags, "\n")
	has := func(names ...string) bool {
		for _, n := range names {
			if !slices.Contains(strings.Fields(flags), n) {
				return false
			}
		}
		return true
	}
	want := Portable
	if has("avx2", "fma", "f16c") {
		want = AVX2
		if has("avx512f", "avx512bw", "avx512dq", "avx512vl") {
			want = AVX512
		}
	}
	if got := detect(); got != want {
		t.Errorf("got %v, want %v as the flags in /proc/cpuinfo say", got, want)
	}
}

// The variable is read at start, so each case is a process of its own: this
// test binary, told to print and leave.
func TestKnobOfProcess(t *testing.T) {
	if os.Getenv("TENURE_CPU_TEST_PRINT") != "" {
		fmt.Printf("level=%v err=%v\n", Level(), Err())
		return
	}
	highest := detect()
	if raceBuild {
		highest = Portable
	}
	for knob, want := range map[string]string{
		"":         fmt.Sprintf("level=%v err=<nil>\n", highest),
		"portable": "level=portable err=<nil>\n",
		"fast":     fmt.Sprintf("level=%v err=TENURE_CPU: got \"fast\"", highest),
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKnobOfProcess$", "-test.v")
		cmd.Env = append(os.Environ(), "TENURE_CPU_TEST_PRINT=1", Knob+"="+knob)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s=%s: %v\n%s", Knob, knob, err, out)
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("%s=%s: got %s, want a line with %q", Knob, knob, out, want)
		}
	}
}

func TestString(t *testing.T) {
	for tier, want := range map[Tier]string{Portable: "portable", NEON: "neon", AVX2: "avx2", AVX512: "avx512", 9: "tier(9)"} {
		if got := tier.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
