package command

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/picture"
)

// imageFlags say how pixels become numbers: (pixel*scale - mean) / std.
type imageFlags struct {
	scale     float64
	scaled    bool // --scale was given
	mean, std []float64
	used      bool // a picture was read
}

// add adds the flags to a command.
func (f *imageFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Float64Var(&f.scale, "scale", 0, "factor of the pixels of a picture, which are 0 to 255 (default: 1/255 for inputs of floats)")
	flags.Float64SliceVar(&f.mean, "mean", nil, "mean per channel, which is subtracted after that: `NUMBER,...`")
	flags.Float64SliceVar(&f.std, "std", nil, "standard deviation per channel, by which the difference is divided: `NUMBER,...`")
}

// told reports whether the flags say anything.
func (f *imageFlags) told() bool { return f.scaled || len(f.mean)+len(f.std) > 0 }

func (f *imageFlags) check() error {
	if f.scaled && f.scale == 0 {
		return usagef("--scale: got 0, want a number that leaves something of the picture")
	}
	for _, s := range f.std {
		if s == 0 {
			return usagef("--std: got 0, want numbers to divide by")
		}
	}
	for _, v := range slices.Concat([]float64{f.scale}, f.mean, f.std) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return usagef("--scale, --mean, --std: got %v, want finite numbers", v)
		}
	}
	return nil
}

// scaleFor returns the factor of the pixels for an input.
func (f *imageFlags) scaleFor(info tenure.Info) (float64, error) {
	dt := info.DType
	switch {
	case info.Text || !picture.Supports(dt):
		return 0, fmt.Errorf("input %s: got a picture, want an input of f16, bf16, f32, f64 or integers of 8 bits and more: %w", info, tenure.ErrDType)
	case f.scaled:
		return f.scale, nil
	case dt.IsFloat():
		return 1.0 / 255, nil
	case dt == dtype.I8:
		return 0, usagef("input %s: got a picture, whose pixels of 0 to 255 i8 does not hold; want --scale, such as --scale 1 --mean 128", info)
	case f.told():
		return 0, usagef("--mean, --std: input %s gets the pixels 0 to 255 as they are; want --scale too where it shall not, such as --scale 1", info)
	}
	return 1, nil
}

// checkChannels wants one number of --mean and --std, or one per channel.
func (f *imageFlags) checkChannels(info tenure.Info, channels int) error {
	want := "1"
	if channels > 1 {
		want = fmt.Sprintf("1 or %d", channels)
	}
	for _, flag := range []struct {
		name string
		list []float64
	}{{"--mean", f.mean}, {"--std", f.std}} {
		if n := len(flag.list); n > 1 && n != channels {
			return usagef("%s: got %s, want %s: input %s has %s", flag.name, countText(n, "number", "numbers"), want, info, countText(channels, "channel", "channels"))
		}
	}
	return nil
}

// read decodes a picture into a tensor for the input, of which more may be
// known than the model declares: where the declared shape says which axis is
// the channels', a height or width that --shape adds does not change it.
func (f *imageFlags) read(path string, info tenure.Info, declared *shape.Shape) (*tensor.Tensor, error) {
	img, err := picture.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f.used = true
	scale, err := f.scaleFor(info)
	if err != nil {
		return nil, err
	}
	frame, err := picture.Fit(info.Shape, picture.LayoutOf(declared), img.Bounds())
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", info, err)
	}
	if err := f.checkChannels(info, frame.Channels); err != nil {
		return nil, err
	}
	t, err := frame.Tensor(img, info.DType, picture.Scaling{Factor: scale, Mean: f.mean, Std: f.std})
	if errors.Is(err, picture.ErrRange) {
		err = usagef("--scale, --mean, --std: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("input %s: %w", info, err)
	}
	return t, nil
}
