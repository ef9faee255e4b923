package conformance_test

import (
	"fmt"
	"os"
	"slices"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/tensor"
)

// declared returns one row for each input or output of the file: of those that
// are no tensors, the first part.
func declared(infos []tenure.Info) []tenure.Info {
	return slices.CompactFunc(infos, func(a, b tenure.Info) bool { return a.Of != nil && a.Of == b.Of })
}

// readValue reads the value of an input or output that is no tensor.
func readValue(files map[string][]byte, name string, c *tenure.Composite) (tenure.Value, error) {
	data, ok := files[name]
	if !ok {
		return nil, fmt.Errorf("the case has no %s", name)
	}
	f, err := os.CreateTemp("", "*.pb")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if closeErr := f.Close(); err != nil || closeErr != nil {
		return nil, fmt.Errorf("%s: %w, %w", name, err, closeErr)
	}
	v, _, err := tenure.ReadValue(f.Name(), c)
	return v, err
}

// compareValue compares an output that is a sequence or an optional with a
// file.
func compareValue(out tenure.Outputs, c *tenure.Composite, files map[string][]byte, name string, tol modeltest.Tolerance) error {
	value, err := readValue(files, name, c)
	if err != nil {
		return err
	}
	defer value.Release()
	var want tenure.Sequence
	switch v := value.(type) {
	case tenure.Sequence:
		want = v
	case *tensor.Tensor:
		want = tenure.Sequence{v}
	}
	got, err := out.Sequence(c.Name)
	if err != nil {
		return err
	}
	defer got.Release()
	if len(got) != len(want) || (got == nil) != (want == nil) && c.Kind == tenure.KindOptionalSequence {
		return fmt.Errorf("got %d elements, want %d", len(got), len(want))
	}
	for i := range want {
		if diff := modeltest.Differs(got[i], want[i], tol); diff != "" {
			return fmt.Errorf("element %d: %s", i, diff)
		}
	}
	return nil
}
