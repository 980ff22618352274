package estate

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/cluster"
	"berth/shared/units"
)

func refuse(field, value, want string) error {
	return &cluster.InvalidError{Field: field, Value: strconv.Quote(value), Want: want}
}

func oneOf(field string, words []string, value string) (string, error) {
	if slices.Contains(words, value) {
		return value, nil
	}
	return "", refuse(field, value, strings.Join(words[:len(words)-1], ", ")+" or "+words[len(words)-1])
}

func number(field string, least, most float64) func(string) (string, error) {
	return func(value string) (string, error) {
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || f < least || f > most {
			return "", refuse(field, value, fmt.Sprintf("a number from %g to %g", least, most))
		}
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	}
}

func whole(field string, least, most int) func(string) (string, error) {
	return func(value string) (string, error) {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return "", refuse(field, value, fmt.Sprintf("a whole number from %d to %d", least, most))
		}
		return strconv.Itoa(n), nil
	}
}

// size is stored in bytes, as "N B" would read anywhere; it is shown in larger units.
func size(field string, least, most units.Bytes) func(string) (string, error) {
	return func(value string) (string, error) {
		n, err := units.ParseBytes(value)
		if err != nil || n < least || n > most {
			return "", refuse(field, value, fmt.Sprintf("a size from %v to %v", least, most))
		}
		return strconv.FormatInt(int64(n), 10), nil
	}
}

func absolute(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		if !path.IsAbs(value) || len(value) > cluster.MaxPathLength || path.Clean(value) != value {
			return "", refuse(field, value, "a clean absolute path")
		}
		return value, nil
	}
}

func source(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		spec := cluster.VMSpec{Memory: cluster.MinVMMemory, VCPUs: 1, Networks: []string{value}}
		if err := cluster.ValidateSpec(spec); err != nil {
			return "", refuse(field, value, "a libvirt network's name, or bridge:NAME")
		}
		return value, nil
	}
}
