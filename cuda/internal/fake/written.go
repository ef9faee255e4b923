package fake

// A bitmap has a bit for each byte of memory, set once the byte was written.

func bitmapSize(n uint64) uint64 { return (n + 7) / 8 }

// setBits sets n bits from the one at.
func setBits(bits []byte, at, n uint64) {
	for ; n > 0 && at%8 != 0; at, n = at+1, n-1 {
		bits[at/8] |= 1 << (at % 8)
	}
	whole := bits[at/8 : at/8+n/8]
	for i := range whole {
		whole[i] = 0xff
	}
	at, n = at+n/8*8, n%8
	if n > 0 {
		bits[at/8] |= 1<<n - 1
	}
}

// clearBits clears n bits from the one at.
func clearBits(bits []byte, at, n uint64) {
	for ; n > 0 && at%8 != 0; at, n = at+1, n-1 {
		bits[at/8] &^= 1 << (at % 8)
	}
	clear(bits[at/8 : at/8+n/8])
	at, n = at+n/8*8, n%8
	if n > 0 {
		bits[at/8] &^= 1<<n - 1
	}
}

// firstClear returns the index, from at, of the first of n bits that is not
// set; n if all are.
func firstClear(bits []byte, at, n uint64) uint64 {
	for i := uint64(0); i < n; {
		if j := at + i; j%8 == 0 && n-i >= 8 && bits[j/8] == 0xff {
			i += 8
			continue
		}
		if !bit(bits, at+i) {
			return i
		}
		i++
	}
	return n
}

func bit(bits []byte, at uint64) bool { return bits[at/8]>>(at%8)&1 != 0 }

// copyBits copies n bits.
func copyBits(dst []byte, to uint64, src []byte, from, n uint64) {
	if firstClear(src, from, n) == n {
		setBits(dst, to, n)
		return
	}
	for i := range n {
		if bit(src, from+i) {
			dst[(to+i)/8] |= 1 << ((to + i) % 8)
		} else {
			dst[(to+i)/8] &^= 1 << ((to + i) % 8)
		}
	}
}
