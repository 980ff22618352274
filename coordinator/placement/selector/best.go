package selector

import "slices"

// Best returns the first most values in order, without sorting the others.
func Best[T any](values []T, most int, compare func(a, b T) int) []T {
	if len(values) <= 2*most {
		slices.SortFunc(values, compare)
		return values[:min(most, len(values))]
	}
	kept := values[:0:0]
	for _, value := range values {
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
