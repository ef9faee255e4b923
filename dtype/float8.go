package dtype

// Float8E4M3FN has 4 exponent bits (bias 7), 3 mantissa bits, no infinity, and NaN at S.1111.111.
type Float8E4M3FN uint8

// Float8E4M3FNUZ has 4 exponent bits (bias 8), 3 mantissa bits, no infinity, no negative zero, and one NaN at 0x80.
type Float8E4M3FNUZ uint8

// Float8E5M2 has 5 exponent bits (bias 15), 2 mantissa bits, and infinities and NaNs as IEEE 754 has them.
type Float8E5M2 uint8

// Float8E5M2FNUZ has 5 exponent bits (bias 16), 2 mantissa bits, no infinity, no negative zero, and one NaN at 0x80.
type Float8E5M2FNUZ uint8

// Float8E8M0 is the power of two 2^(value-127); 0xff is NaN. It has no zero, no sign and no infinity.
type Float8E8M0 uint8
