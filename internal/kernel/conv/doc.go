// Package conv has the kernels whose windows move over spatial axes:
// convolutions (Conv for float32, with the calls that are fused into it; Half
// for 16-bit floats; Plain for other floats), transposed convolutions
// (Transpose, HalfTranspose, PlainTranspose), pools (Pool, BytePool,
// PlainPool), deformable convolutions (Deform), and the inverses of pools and
// patches (MaxUnpool, Fold). Window has the sizes, strides and pads of all of
// them.
//
//	c := conv.Conv{Batch: 1, Group: 1, InChannels: 3, OutChannels: 64, Window: conv.Window{In: in, Kernel: size}}
//	c.Prepare(v)
//	scratch := make([]float32, c.ScratchBytes()/4)
//	for t := range c.Tiles() {
//		c.Tile(t, scratch, &conv.Args{Out: out, In: x, Weights: weights})
//	}
//
// The caller owns all memory, packed weights and scratch included; weights are
// read with the variant that packed them. A prepared spec is read only, and any
// number of goroutines may compute different tiles, each with its own scratch.
package conv
