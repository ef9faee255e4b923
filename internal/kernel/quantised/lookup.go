package quantised

import "github.com/tenure-go/tenure/internal/kernel"

// Lookup computes dst[i] = table[x[i]]. dst may be x.
func Lookup(v *kernel.Variant, dst, x, table []byte) {
	t := (*[256]byte)(table)
	dst = dst[:len(x)]
	if v.Bytes.Lookup != nil && len(x) > 0 {
		v.Bytes.Lookup(len(x), &dst[0], &x[0], &t[0])
		return
	}
	for len(x) >= 8 {
		d, s := dst[:8:8], x[:8:8]
		a, b, c, e := t[s[0]], t[s[1]], t[s[2]], t[s[3]]
		f, g, h, i := t[s[4]], t[s[5]], t[s[6]], t[s[7]]
		d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = a, b, c, e, f, g, h, i
		dst, x = dst[8:], x[8:]
	}
	for i, v := range x {
		dst[i] = t[v]
	}
}
