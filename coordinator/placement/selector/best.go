package selector

import (
	"iter"
	"slices"
)

// Best returns the first most values in order, without sorting or keeping the others.
func Best[T any](values iter.Seq[T], most int, compare func(a, b T) int) []T {
	if most <= 0 {
		return nil
	}
	var kept []T
	for value := range values {
		if len(kept) >= most && compare(value, kept[most-1]) > 0 {
			continue
		}
		if kept = append(kept, value); len(kept) == 2*most {
			slices.SortFunc(kept, compare)
			kept = kept[:most]
		} else if len(kept) == most {
			slices.SortFunc(kept, compare)
		}
	}
	slices.SortFunc(kept, compare)
	return kept[:min(most, len(kept))]
}
