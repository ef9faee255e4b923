package text

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// AppendFloat appends a number with up to eight digits, as C prints %.8g, and
// names for numbers that are none.
func AppendFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "INF"...)
	case math.IsInf(v, -1):
		return append(dst, "-INF"...)
	}
	return strconv.AppendFloat(dst, v, 'g', 8, 64)
}

// ParseFloat reads a decimal number, an infinity or NaN. Numbers out of range
// are infinite.
func ParseFloat(s []byte) (float64, error) {
	text := string(bytes.TrimSpace(s))
	if strings.ContainsAny(text, "_xX") { // Go's notations
		return 0, notANumber(s)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, notANumber(s)
	}
	return v, nil
}

// integer reads a whole number, with or without a sign; ok is false for what is
// none, or has more than 64 bits.
func integer(s []byte) (size uint64, negative, ok bool) {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	for _, c := range s {
		if c < '0' || c > '9' || size > (math.MaxUint64-uint64(c-'0'))/10 {
			return 0, false, false
		}
		size = size*10 + uint64(c-'0')
	}
	return size, negative, len(s) > 0
}

// ParseInt reads an integer of 64 bits; the fraction of another number is cut
// off.
func ParseInt(s []byte) (int64, error) {
	size, negative, ok := integer(bytes.TrimSpace(s))
	switch {
	case ok && negative && size <= 1<<63:
		return -int64(size), nil
	case ok && !negative && size < 1<<63:
		return int64(size), nil
	}
	v, err := ParseFloat(s)
	if err != nil || !(v >= -1<<63 && v < 1<<63) {
		return 0, notANumber(s)
	}
	return int64(v), nil
}

// ParseUint is ParseInt without a sign; a negative integer wraps.
func ParseUint(s []byte) (uint64, error) {
	if size, negative, ok := integer(bytes.TrimSpace(s)); ok && !negative {
		return size, nil
	}
	if v, err := ParseInt(s); err == nil {
		return uint64(v), nil
	}
	v, err := ParseFloat(s)
	if err != nil || !(v >= 0 && v < 1<<64) {
		return 0, notANumber(s)
	}
	return uint64(v), nil
}

func notANumber(s []byte) error {
	return fmt.Errorf("got %.80q, want a number of this type", s)
}
