package conformance_test

import "path"

// exclusion is a row of cases that do not pass, and why. They stay in the
// denominator of what passed.
type exclusion struct {
	names  string // a pattern of path.Match
	reason string
}

// excludedBy returns the row that names a case, nil for none.
func excludedBy(name string) *exclusion {
	for i := range excluded {
		if ok, err := path.Match(excluded[i].names, name); err != nil {
			panic("BUG: " + excluded[i].names + ": " + err.Error())
		} else if ok {
			return &excluded[i]
		}
	}
	return nil
}

const (
	preview     = "a preview domain: its operators may change"
	training    = "training"
	images      = "decoding of images"
	ancient     = "an opset before 6"
	batchedScan = "Scan of opset 8, with a batch and lengths of its own"
)

// excluded holds the cases that do not pass. A row that names only cases that
// pass fails the test.
var excluded = []exclusion{
	{names: "test_flexattention*", reason: preview},
	{names: "test_ada*", reason: training},
	{names: "test_momentum*", reason: training},
	{names: "test_nesterov_momentum", reason: training},
	{names: "test_gradient_*", reason: training},
	{names: "test_image_decoder_*", reason: images},
	{names: "test_not_?d", reason: ancient},
	{names: "test_scan_sum", reason: batchedScan},
}
