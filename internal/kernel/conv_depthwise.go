package kernel

// A depthwise convolution has too few products per patch to gather patches first. A tile copies the rows of its channel that it reads
// once, through the prologue, with zeros for the padding on all sides; then every tap is a plain row operation.

// prepareDepthwise makes a tile of one channel's rows: many enough that what it copies is little more than what it computes.
func (c *Conv) prepareDepthwise() {
	c.rowTile, c.rowTiles = 1, c.perGroup
	if c.outArea == 0 {
		c.colTile = 1
		return
	}
	c.colTile = min(max(1, 2*rangeElements/(c.out[2]*c.taps)), c.out[1])
	// A tile's rows lie in one plane of the output.
	c.colTiles = c.out[0] * ceilDiv(c.out[1], c.colTile)
	c.region = c.kernel[0] * c.paddedRows(c.colTile) * c.paddedWidth()
}

// paddedRows is how many rows of input a number of output rows reads.
func (c *Conv) paddedRows(rows int) int {
	return (rows-1)*c.stride[1] + (c.kernel[1]-1)*c.dilation[1] + 1
}

func (c *Conv) paddedWidth() int {
	return (c.out[2]-1)*c.stride[2] + (c.kernel[2]-1)*c.dilation[2] + 1
}

// depthwiseTile computes one run of colTile rows of one output channel.
func (c *Conv) depthwiseTile(batch, group, row, part int, scratch []float32, args *ConvArgs) {
	perPlane := ceilDiv(c.out[1], c.colTile)
	z, y0 := part/perPlane, part%perPlane*c.colTile
	rows := min(c.colTile, c.out[1]-y0)
	height, width := c.paddedRows(rows), c.paddedWidth()
	c.padInput(scratch, batch, group, z, y0, height, width, args)

	m := group*c.perGroup + row
	first := (z*c.out[1] + y0) * c.out[2]
	r := rect{
		at: batch*c.OutBatchStride + m*c.outArea + first, ld: c.out[2],
		res: batch*c.ResidualBatchStride + m*c.outArea + first, resLD: c.out[2],
		rows: rows, cols: c.out[2], row: m, width: c.out[2],
	}
	if !c.begin(&r, args.Out, nil, args.Residual) {
		zeroRect(&r, args.Out)
	}
	weights := args.Weights[m*c.taps:][:c.taps]
	for i := range rows {
		out := args.Out[r.at+i*r.ld:][:r.cols]
		for tz := range c.kernel[0] {
			at := (tz*height + i*c.stride[1]) * width
			w := weights[tz*c.kernel[1]*c.kernel[2]:][:c.kernel[1]*c.kernel[2]]
			tapRows(out, scratch[at:], w, c.kernel[2], c.dilation[1]*width, c.stride[2], c.dilation[2])
		}
	}
	// The bias of a rectangle is per row; here all rows are one channel, and follow each other.
	r.rows, r.cols = 1, rows*r.cols
	c.end(&r, args.Out, args.Bias)
}

// padInput copies the rows that the taps of output rows y0 on read, a plane for each tap of the outermost axis.
func (c *Conv) padInput(dst []float32, batch, channel, z, y0, height, width int, args *ConvArgs) {
	in := args.In[batch*c.InBatchStride+channel*c.inArea:][:c.inArea]
	left := min(c.padBegin[2], width)
	for tz := range c.kernel[0] {
		iz := z*c.stride[0] - c.padBegin[0] + tz*c.dilation[0]
		for i := range height {
			row := dst[(tz*height+i)*width:][:width]
			iy := y0*c.stride[1] - c.padBegin[1] + i
			if iz < 0 || iz >= c.in[0] || iy < 0 || iy >= c.in[1] {
				clear(row)
				continue
			}
			clear(row[:left])
			n := copy(row[left:], in[(iz*c.in[1]+iy)*c.in[2]:][:c.in[2]])
			c.prologue(row[left:left+n], channel, args)
			clear(row[left+n:])
		}
	}
}

// tapRows adds a plane of taps to a row of outputs: out[i] += sum of w[r*taps+k]*in[r*rowStep+i*stride+k*dilation]. It is a dispatch point.
var tapRows = portableTapRows

func portableTapRows(out, in, w []float32, taps, rowStep, stride, dilation int) {
	width := (len(out)-1)*stride + (taps-1)*dilation + 1
	for r := range len(w) / taps {
		portableTapRow(out, in[r*rowStep:][:width], w[r*taps:][:taps], stride, dilation)
	}
}

func portableTapRow(out, in, w []float32, stride, dilation int) {
	if len(w) == 3 && dilation == 1 && stride <= 2 {
		taps3(out, in, w, stride)
		return
	}
	for k, v := range w {
		from := in[k*dilation:]
		if stride == 1 {
			from = from[:len(out)]
			for i, x := range from {
				out[i] += v * x
			}
			continue
		}
		for i := range out {
			out[i] += v * from[i*stride]
		}
	}
}

// taps3 reads and writes an output once for its three taps.
func taps3(out, in, w []float32, stride int) {
	w0, w1, w2 := w[0], w[1], w[2]
	if stride == 2 {
		for i := range out {
			x := in[2*i : 2*i+3 : 2*i+3]
			out[i] += w0*x[0] + w1*x[1] + w2*x[2]
		}
		return
	}
	in = in[:len(out)+2]
	x0, x1 := in[0], in[1]
	for i, x2 := range in[2:] {
		out[i] += w0*x0 + w1*x1 + w2*x2
		x0, x1 = x1, x2
	}
}
