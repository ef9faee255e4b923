package ref

import "slices"

// CountNGrams counts how often an n-gram is in a row, with up to skip items
// between each two of its own, as many everywhere.
func CountNGrams(row, gram []int64, skip int) int {
	if len(gram) == 1 {
		skip = 0
	}
	count := 0
	for step := 1; step <= skip+1; step++ {
		for from := range row {
			var found []int64
			for at := from; at < len(row) && len(found) < len(gram); at += step {
				found = append(found, row[at])
			}
			if slices.Equal(found, gram) {
				count++
			}
		}
	}
	return count
}
