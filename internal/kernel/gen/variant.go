package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// variant is the table of a machine's loops.
type variant struct {
	*machine
	groups []*group
}

// group is a field of the table: what its fields are, and the entries of those
// that are arrays. What a machine has no loop for it takes from the one below,
// whose instructions it has as well.
type group struct {
	part
	below  *group
	fields map[string]string
	arrays map[string]*array
	loops  map[string]elementLoop // by name, of elements
}

type array struct {
	typ     string
	entries map[string]string // by index
}

// set sets a field of the table.
func (g *group) set(field string, value any) {
	if g.fields == nil {
		g.fields = map[string]string{}
	}
	g.fields[field] = fmt.Sprint(value)
}

// put sets an element of an array of the table. The index may have several
// parts.
func (g *group) put(field, typ, value string, index ...string) {
	if g.arrays == nil {
		g.arrays = map[string]*array{}
	}
	if g.arrays[field] == nil {
		g.arrays[field] = &array{typ: typ, entries: map[string]string{}}
	}
	g.arrays[field].entries[strings.Join(index, " ")] = value
}

// inherit takes over the loops that only the machine below has.
func (g *group) inherit() {
	if g.below == nil {
		return
	}
	for field, value := range g.below.fields {
		if _, ok := g.fields[field]; !ok {
			g.set(field, value)
		}
	}
	for field, a := range g.below.arrays {
		for index, value := range a.entries {
			if g.arrays[field] == nil || g.arrays[field].entries[index] == "" {
				g.put(field, a.typ, value, index)
			}
		}
	}
}

func (v *variant) text() string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n// %s are the loops for %s.\nvar %[1]s = kernel.Variant{\nName: %[1]q,\n", v.name, strings.ToUpper(v.name))
	for _, g := range v.groups {
		g.inherit()
		fmt.Fprintf(&s, "%s: kernel.%s{\n", g.field, g.typ)
		for _, field := range slices.Sorted(maps.Keys(g.fields)) {
			fmt.Fprintf(&s, "%s: %s,\n", field, g.fields[field])
		}
		for _, field := range slices.Sorted(maps.Keys(g.arrays)) {
			fmt.Fprintf(&s, "%s: kernel.%s{\n", field, g.arrays[field].typ)
			writeEntries(&s, g.arrays[field].entries)
			s.WriteString("},\n")
		}
		s.WriteString("},\n")
	}
	s.WriteString("}\n")
	return s.String()
}

// writeEntries writes the elements of an array by their indices, and those with
// several parts as arrays of arrays.
func writeEntries(s *strings.Builder, entries map[string]string) {
	inner := map[string]map[string]string{}
	for _, index := range slices.Sorted(maps.Keys(entries)) {
		first, rest, nested := strings.Cut(index, " ")
		if !nested {
			fmt.Fprintf(s, "%s: %s,\n", first, entries[index])
			continue
		}
		if inner[first] == nil {
			inner[first] = map[string]string{}
		}
		inner[first][rest] = entries[index]
	}
	for _, first := range slices.Sorted(maps.Keys(inner)) {
		fmt.Fprintf(s, "%s: {\n", first)
		writeEntries(s, inner[first])
		s.WriteString("},\n")
	}
}

// capital is a name as it is exported.
func capital(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
