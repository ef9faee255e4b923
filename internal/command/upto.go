package command

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
)

const upToHelp = "promise memory for all sizes of dimensions up to bounds, `NAME=SIZE,...` (again for more); a dimension without a name is INPUT[AXIS]"

// aboutUpTo is the part of help that explains --up-to.
const aboutUpTo = `--up-to seq=512,batch=8 is for every size of these dimensions, from 0 to the
bound: the largest arena, scratch, inputs and outputs are the promise, with the
sizes that take them. Up to 4096 sizes are planned and proved, each; more are
cut into boxes, which are proved by expressions, and what is left is planned one
by one, at most 65536 sizes.
--shape fixes other dimensions. Sizes that the model refuses are listed.`

// upTo is what --up-to says.
type upTo []upToBound

type upToBound struct {
	name string
	most int
}

var upToPattern = regexp.MustCompile(`^(.+?)=(\d+)(?:,|$)`)

// parseUpTo reads --up-to a=1,b=2; a name may have commas.
func parseUpTo(flags []string) (upTo, error) {
	var list upTo
	for _, f := range flags {
		for rest := f; rest != "" || f == ""; {
			m := upToPattern.FindStringSubmatch(rest)
			if m == nil {
				return nil, usagef("--up-to %s: got %q, want NAME=SIZE,...", f, rest)
			}
			n, err := strconv.Atoi(m[2])
			if err != nil {
				return nil, usagef("--up-to %s: got the size %s, want a smaller one", f, m[2])
			}
			list = append(list, upToBound{m[1], n})
			rest = strings.TrimPrefix(rest, m[0])
		}
	}
	return list, nil
}

// options are those of a session for the sizes up to the bounds, with the sizes
// of other dimensions that --shape says.
func (u upTo) options(m *tenure.Model, given sizes) ([]tenure.SessionOption, error) {
	if u == nil {
		return nil, nil
	}
	var opts []tenure.SessionOption
	for _, b := range u {
		opts = append(opts, tenure.WithUpTo(b.name, b.most))
	}
	b, err := given.bind(m)
	if err != nil {
		return nil, err
	}
	for _, symbol := range slices.Sorted(maps.Keys(b.dims)) {
		opts = append(opts, tenure.WithSizes(symbol, b.dims[symbol]))
	}
	for _, info := range b.inputs {
		sizes, ok := b.shapes[info.Name]
		if !ok || info.Shape == nil || info.Shape.Rank() != len(sizes) {
			continue
		}
		for axis, d := range info.Shape.Dims() {
			if isUnknown(d) {
				opts = append(opts, tenure.WithSizes(fmt.Sprintf("%s[%d]", info.Name, axis), sizes[axis]))
			}
		}
	}
	return opts, nil
}

// planUpTo reports the promise for all sizes up to the bounds.
func planUpTo(cmd *cobra.Command, path string, u upTo, given sizes, how []tenure.Option, opts []tenure.SessionOption, asJSON bool) error {
	r, err := promiseUpTo(cmd, path, u, given, how, opts)
	if err != nil {
		return err
	}
	if asJSON {
		return r.WriteJSON(cmd.OutOrStdout())
	}
	return r.Report(reportTo(cmd.OutOrStdout()))
}

func promiseUpTo(cmd *cobra.Command, path string, u upTo, given sizes, how []tenure.Option, opts []tenure.SessionOption) (*plan.Range, error) {
	var w work
	defer w.begin("planning")()
	m, err := loadModel(path, append(how, tenure.WithProgress(w.report))...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	bounds, err := u.options(m, given)
	if err != nil {
		return nil, err
	}
	return m.PlanUpTo(cmd.Context(), append(opts, bounds...)...)
}

// promiseOf returns a plan with the figures of a session's promise in the place
// of its own, and says what the promise is for.
func promiseOf(s *tenure.Session, p *plan.Plan) (_ *plan.Plan, what string) {
	r := s.Promise()
	if r == nil {
		return p, ""
	}
	all := *p
	all.ArenaBytes, all.ScratchBytes, all.IOBytes, all.WeightBytes = r.Arena.Bytes, r.Scratch.Bytes, r.IO.Bytes, r.WeightBytes
	var dims []string
	for _, d := range r.Dims {
		dims = append(dims, d.String())
	}
	return &all, " for " + strings.Join(dims, ", ")
}
