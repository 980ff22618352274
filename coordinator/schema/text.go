package schema

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Text is the value of the field in words for differences. Names are those of what it links to, by ID. Keys have a name and a
// text each: see Parts.
func (f *Field[R]) Text(r *R, names map[string]string) string {
	switch at := f.At(r).(type) {
	case *string:
		switch {
		case f.To != "":
			return cmp.Or(names[*at], *at)
		case f.Long != "" && *at != "":
			digest := sha256.Sum256([]byte(*at)) // two texts may have the same number of lines
			return fmt.Sprintf("%d lines of %s (sha256 %x)", strings.Count(strings.TrimRight(*at, "\n"), "\n")+1, f.Long, digest[:4])
		default:
			return f.Shown(*at)
		}
	case *Place:
		return cmp.Or(names[string(*at)], string(*at))
	case *bool:
		return strconv.FormatBool(*at)
	case *int:
		if *at == 0 {
			return ""
		}
		return strconv.Itoa(*at)
	case *units.Bytes:
		if *at == 0 {
			return ""
		}
		return Exact(*at)
	case **float64:
		if *at == nil {
			return f.Unset
		}
		return Figure(**at)
	case **units.Bytes:
		if *at == nil {
			return f.Unset
		}
		return Exact(**at)
	case *[]string:
		return strings.Join(named(names, *at, f.To == model.KindNode), ", ")
	case Disks:
		return strings.Join(append(named(names, *at.Linked, false), files(*at.Files)...), ", ")
	default:
		return ""
	}
}

// Parts are the names and texts of a field that has several values of which each is told by itself; false for all others.
func (f *Field[R]) Parts(r *R) (map[string]string, bool) {
	parts := make(map[string]string)
	switch at := f.At(r).(type) {
	case *[]model.Key:
		for _, key := range *at {
			parts[KeyField(key)] = KeyText(key)
		}
	case *map[string]float64:
		for name, value := range *at {
			parts[NodeKeyField(name)] = Figure(value)
		}
	default:
		return nil, false
	}
	return parts, true
}

// named are the names of several things; of what has none, the ID. Members are in the order of their names.
func named(names map[string]string, ids []string, Sorted bool) []string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = cmp.Or(names[id], id)
	}
	if Sorted {
		slices.Sort(words)
	}
	return words
}

func files(disks []model.Disk) []string {
	words := make([]string, len(disks))
	for i, disk := range disks {
		words[i] = fmt.Sprintf("%s (%s, %s", disk.Path, disk.Format, disk.Bus)
		if disk.ReadOnly {
			words[i] += ", read-only"
		}
		words[i] += ")"
	}
	return words
}

// KeyField is how a key is called in differences: key NAME, with its class if that is not system.
func KeyField(key model.Key) string {
	if key.Class == model.SystemKey {
		return "key " + key.Name
	}
	return "key " + key.Name + " (" + string(key.Class) + ")"
}

// NodeKeyField is how the value that a node sets of a key is called in problems and differences.
func NodeKeyField(name string) string { return "key " + name }

// KeyText is a key's value and weight in words.
func KeyText(key model.Key) string {
	return "value " + Figure(key.Value) + ", weight " + Figure(key.Weight)
}

// Figure is a number as people write it.
func Figure(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Exact is a size in the largest unit that it is a whole number of, as 2G.
func Exact(size units.Bytes) string {
	for _, unit := range []struct {
		size   units.Bytes
		letter string
	}{{units.TiB, "T"}, {units.GiB, "G"}, {units.MiB, "M"}, {units.KiB, "K"}} {
		if size != 0 && size%unit.size == 0 {
			return strconv.FormatInt(int64(size/unit.size), 10) + unit.letter
		}
	}
	return strconv.FormatInt(int64(size), 10)
}

func quoted(text string) string { return strconv.Quote(text) }

// NodeKeyText is a declared node key's default, and its weight if it is sticky, in words.
func NodeKeyText(key model.NodeKey) string {
	text := "default " + Figure(key.Default)
	if key.Sticky {
		text += ", sticky, weight " + Figure(key.Weight)
	}
	return text
}

// SettingText is a stored setting as people write it: sizes with a unit.
func SettingText(setting Setting, value string) string {
	if setting.Bytes {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return Exact(units.Bytes(n))
		}
	}
	return value
}
