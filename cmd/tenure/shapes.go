package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure"
)

// parseShapes reads --shape name=1,3,224,224; a scalar is name= .
func parseShapes(flags []string) (tenure.Shapes, error) {
	shapes := tenure.Shapes{}
	for _, f := range flags {
		i := strings.LastIndex(f, "=")
		if i <= 0 {
			return nil, usagef("--shape %s: want NAME=SIZE,SIZE,...", f)
		}
		name, list := f[:i], strings.Trim(f[i+1:], "[] ")
		dims := []int{}
		for _, word := range strings.Split(list, ",") {
			if list == "" {
				break
			}
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil || n < 0 {
				return nil, usagef("--shape %s: got size %q, want a number of zero or more", f, word)
			}
			dims = append(dims, n)
		}
		if _, twice := shapes[name]; twice {
			return nil, usagef("--shape %s: %q is given twice", f, name)
		}
		shapes[name] = dims
	}
	return shapes, nil
}

// hintShapes adds to the error of a plan the inputs whose sizes are open.
func hintShapes(m *tenure.Model, given tenure.Shapes, err error) error {
	if !errors.Is(err, tenure.ErrInput) {
		return err
	}
	var hints []string
	for _, info := range m.Inputs() {
		if _, ok := given[info.Name]; ok || info.Shape != nil && info.Shape.IsStatic() {
			continue
		}
		sizes := "SIZE,..."
		if info.Shape != nil {
			sizes = strings.Trim(info.Shape.String(), "[]")
		}
		hints = append(hints, fmt.Sprintf("--shape %s=%s", info.Name, sizes))
	}
	if len(hints) > 0 {
		hints = append(hints, "with numbers for the open sizes")
	}
	return hintError{err, hints}
}
