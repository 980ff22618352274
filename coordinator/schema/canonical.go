package schema

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/shared/domxml/guard"
	"berth/shared/units"
)

func refuse(field, value, want string) error {
	return &model.InvalidError{Field: field, Value: strconv.Quote(value), Want: want}
}

func oneOf(field string, words []string, value string) (string, error) {
	if slices.Contains(words, value) {
		return value, nil
	}
	return "", refuse(field, value, AnyOf(words))
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

// window is the one text of a time of the week.
func window(value string) (string, error) {
	w, err := model.ParseWindow(value)
	if err != nil || value == "" {
		return "", refuse(model.SettingBalanceWindow, value, `a time of the week in UTC, as "22:00-06:00" or "Sat,Sun 00:00-24:00"`)
	}
	return w.String(), nil
}

// duration is stored as people write it: 90m is 1h30m.
func duration(field string, least, most time.Duration) func(string) (string, error) {
	return func(value string) (string, error) {
		d, err := time.ParseDuration(value)
		if err != nil || d < least || d > most || d%time.Second != 0 {
			return "", refuse(field, value, fmt.Sprintf("whole seconds from %s to %s, for instance 30m", durationText(least), durationText(most)))
		}
		return durationText(d), nil
	}
}

// sickAfter is a duration, or never.
func sickAfter(value string) (string, error) {
	if value == model.FenceSickNever {
		return value, nil
	}
	return duration(model.SettingFenceSickAfter, model.MinFenceSickAfter, model.MaxFenceAfter)(value)
}

// durationText leaves out the zeros that time.Duration ends with: 30m, 720h.
func durationText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// priority is a number above 0 in steps of model.PriorityStep.
func priority(value string) (string, error) {
	const steps = 1 / model.PriorityStep
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(f) || f <= 0 || f > model.MaxPriority || math.Round(f*steps)/steps != f {
		return "", refuse(model.SettingPriority, value,
			fmt.Sprintf("a number above 0 and up to %.0f, with at most seven digits behind the point", model.MaxPriority))
	}
	return strconv.FormatFloat(f, 'f', -1, 64), nil
}

// Canonical checks the words of a list and puts them in the order in which they are stored. The error is a
// *model.InvalidError.
func (l List) Canonical(words []string) ([]string, error) {
	canonical := make([]string, 0, len(words))
	named := make(map[string]bool, len(words))
	for _, word := range words {
		name := word
		if l.Pairs {
			var err error
			if name, word, err = l.pair(word); err != nil {
				return nil, err
			}
		}
		if l.Words != nil && !slices.Contains(l.Words, name) {
			return nil, refuse(l.Name, name, AnyOf(l.Words))
		}
		if l.check != nil {
			if err := l.check(name); err != nil {
				return nil, err
			}
		}
		if named[name] {
			return nil, refuse(l.Name, name, "each of them once")
		}
		named[name] = true
		canonical = append(canonical, word)
	}
	if len(canonical) > model.MaxLabels {
		return nil, &model.InvalidError{
			Field: l.Name, Value: fmt.Sprintf("of %d words", len(canonical)), Want: fmt.Sprintf("at most %d", model.MaxLabels),
		}
	}
	slices.Sort(canonical)
	return canonical, nil
}

func (l List) pair(word string) (name, canonical string, err error) {
	name, figure, is := strings.Cut(word, "=")
	f, wrong := strconv.ParseFloat(figure, 64)
	if !is || name == "" || wrong != nil || model.ValidateKeyFigure(l.Name, f) != nil {
		return "", "", refuse(l.Name, word, fmt.Sprintf("NAME=NUMBER, a finite number from %g to %g", -model.MaxKeyFigure, model.MaxKeyFigure))
	}
	return name, PairText(name, f), nil
}

// PairText is a pair of a list as records have it: NAME=NUMBER.
func PairText(name string, f float64) string { return name + "=" + Figure(f) }

// CutPair takes a pair of a list apart. Records are validated where they come in; a number that cannot be read is 0.
func CutPair(pair string) (name string, f float64) {
	name, text, _ := strings.Cut(pair, "=")
	f, _ = strconv.ParseFloat(text, 64)
	return name, f
}

func absolute(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		if !path.IsAbs(value) || len(value) > model.MaxPathLength || path.Clean(value) != value {
			return "", refuse(field, value, "a clean absolute path")
		}
		return value, nil
	}
}

func source(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		spec := model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1, Networks: []string{value}}
		if err := model.ValidateSpec(spec); err != nil {
			return "", refuse(field, value, "a libvirt network's name, or bridge:NAME")
		}
		return value, nil
	}
}

// permissions reads what a cluster permits.
func permissions(value string) (string, error) {
	if value == model.PermitAll || value == model.PermitNone {
		return value, nil
	}
	list, bad := guard.Split(value)
	if bad != "" || value == "" {
		return "", refuse(model.SettingPermit, cmp.Or(bad, value), "all, none, or of "+guard.Join(guard.Permissions())+" with commas between")
	}
	return guard.Join(list), nil
}

// folders reads folders of hosts. The root and what has the host's devices hold no images alone.
func folders(value string) (string, error) {
	if value == model.PermitNone {
		return value, nil
	}
	var list []string
	for folder := range strings.SplitSeq(value, ",") {
		folder = strings.TrimSpace(folder)
		if !guard.Folder(folder) {
			return "", refuse(model.SettingImageFolders, folder,
				"none, or absolute paths with commas between, none of which is / or one of the host's own")
		}
		if !slices.Contains(list, folder) {
			list = append(list, folder)
		}
	}
	return strings.Join(list, ","), nil
}
