package model

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrInvalid is wrapped by every InvalidError.
var ErrInvalid = errors.New("not valid")

// InvalidError says what is wrong with one value that came from outside.
type InvalidError struct {
	Field string // as in the API and on the command line: memory, vcpus, disks[1].path, ram_ratio
	Value string // as given, shortened
	Want  string // the range or form, in words
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %s is not valid: want %s", e.Field, e.Value, e.Want)
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(field, value, want string) error {
	return &InvalidError{Field: field, Value: value, Want: want}
}

// quoted shows a string that may be anything.
func quoted(s string) string {
	const most = 64
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}

var (
	namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// ValidateName checks the name of a thing ("VM", "node", ...): 1 to 64 of letters, digits, dot, underscore and dash, the
// first one a letter or a digit. A UUID is no name: it would be taken for an ID. The error is an *InvalidError.
func ValidateName(thing, name string) error {
	if uuidPattern.MatchString(name) {
		return invalid(thing+" name", quoted(name), "something else than a UUID, which is kept for IDs")
	}
	if namePattern.MatchString(name) {
		return nil
	}
	return invalid(thing+" name", quoted(name), nameForm)
}

// MaxLabels bounds the labels of one VM, node or group.
const MaxLabels = 64

// ValidateLabels checks labels: of the same characters as names, and each there once. The error is an *InvalidError.
func ValidateLabels(labels []string) error {
	if len(labels) > MaxLabels {
		return invalid("labels", fmt.Sprintf("of %d words", len(labels)), fmt.Sprintf("at most %d", MaxLabels))
	}
	for i, label := range labels {
		if err := ValidateLabel(label); err != nil {
			return err
		}
		if slices.Contains(labels[:i], label) {
			return invalid("labels", quoted(label), "each of them once")
		}
	}
	return nil
}

// ValidateLabel checks one label. The error is an *InvalidError.
func ValidateLabel(label string) error {
	if namePattern.MatchString(label) {
		return nil
	}
	return invalid("label", quoted(label), nameForm)
}

const nameForm = "1 to 64 letters, digits, dots, underscores or dashes, the first one a letter or a digit"

// ValidateSettings checks the settings that are set against their ranges. The error is an *InvalidError.
func ValidateSettings(s NodeSettings) error {
	if err := validateRatio("ram_ratio", s.RAMRatio, MinRAMRatio, MaxRAMRatio); err != nil {
		return err
	}
	if err := validateRatio("cpu_ratio", s.CPURatio, MinCPURatio, MaxCPURatio); err != nil {
		return err
	}
	if s.Overhead != nil && (*s.Overhead < 0 || *s.Overhead > MaxOverhead) {
		return invalid("overhead", s.Overhead.String(), fmt.Sprintf("0 to %v", MaxOverhead))
	}
	return nil
}

func validateRatio(field string, ratio *float64, least, most float64) error {
	if ratio == nil || *ratio >= least && *ratio <= most { // false for a NaN
		return nil
	}
	return invalid(field, strconv.FormatFloat(*ratio, 'g', -1, 64), fmt.Sprintf("%g to %g", least, most))
}

// ValidateSpec checks a VM's description: its size, and that either the administrator's XML or the other fields say what
// it is made of. Whether the XML is a domain is for those who can read it. The error is an *InvalidError.
func ValidateSpec(spec VMSpec) error {
	if spec.Memory < MinVMMemory || spec.Memory > MaxVMMemory {
		return invalid("memory", spec.Memory.String(), fmt.Sprintf("%v to %v", MinVMMemory, MaxVMMemory))
	}
	if spec.VCPUs < 1 || spec.VCPUs > MaxVCPUs {
		return invalid("vcpus", strconv.Itoa(spec.VCPUs), fmt.Sprintf("1 to %d", MaxVCPUs))
	}
	if spec.MaxMemory != 0 && (spec.MaxMemory < spec.Memory || spec.MaxMemory > MaxVMMemory) {
		return invalid("max_memory", spec.MaxMemory.String(), fmt.Sprintf("its memory, %v, to %v; or 0", spec.Memory, MaxVMMemory))
	}
	if spec.MaxVCPUs != 0 && (spec.MaxVCPUs < spec.VCPUs || spec.MaxVCPUs > MaxVCPUs) {
		return invalid("max_vcpus", strconv.Itoa(spec.MaxVCPUs), fmt.Sprintf("its vCPUs, %d, to %d; or 0", spec.VCPUs, MaxVCPUs))
	}
	if spec.XML != "" {
		return validateXMLAlone(spec)
	}
	if err := validateBoot(spec); err != nil {
		return err
	}
	if err := validateMachine(spec); err != nil {
		return err
	}
	if err := validateDisks(spec.Disks); err != nil {
		return err
	}
	return validateNetworks(spec.Networks)
}

func validateXMLAlone(spec VMSpec) error {
	if len(spec.XML) > MaxXMLLength {
		return invalid("xml", fmt.Sprintf("of %d bytes", len(spec.XML)), fmt.Sprintf("at most %d", MaxXMLLength))
	}
	for _, other := range []struct {
		field string
		set   bool
	}{
		{"kernel", spec.Kernel != ""},
		{"initrd", spec.Initrd != ""},
		{"cmdline", spec.Cmdline != ""},
		{"disks", len(spec.Disks) > 0},
		{"networks", len(spec.Networks) > 0},
		{"machine", spec.Machine != ""},
		{"firmware", spec.Firmware != ""},
		{"cpu", spec.CPU != ""},
		{"user_data", spec.UserData != ""},
		{"max_memory", spec.MaxMemory != 0},
		{"max_vcpus", spec.MaxVCPUs != 0},
	} {
		if other.set {
			return invalid(other.field, "together with xml", "one or the other: the XML says it all")
		}
	}
	return nil
}

func validateBoot(spec VMSpec) error {
	for _, file := range []struct{ field, path string }{{"kernel", spec.Kernel}, {"initrd", spec.Initrd}} {
		if file.path == "" {
			continue
		}
		if err := validatePath(file.field, file.path); err != nil {
			return err
		}
	}
	if spec.Kernel == "" && (spec.Initrd != "" || spec.Cmdline != "") {
		return invalid("kernel", quoted(""), "a kernel, because there is an initrd or a cmdline")
	}
	if len(spec.Cmdline) > MaxCmdlineLength || !printable(spec.Cmdline) {
		return invalid("cmdline", quoted(spec.Cmdline), fmt.Sprintf("at most %d printable characters", MaxCmdlineLength))
	}
	return nil
}

// validateMachine checks what a VM's machine is. Whether the nodes have such a machine type or CPU model is not known here.
func validateMachine(spec VMSpec) error {
	for _, word := range []struct{ field, value string }{{"machine", spec.Machine}, {"cpu", spec.CPU}} {
		if word.value != "" && !namePattern.MatchString(word.value) {
			return invalid(word.field, quoted(word.value), nameForm)
		}
	}
	switch spec.Firmware {
	case "", FirmwareBIOS, FirmwareEFI:
	default:
		return invalid("firmware", quoted(spec.Firmware), FirmwareBIOS+" or "+FirmwareEFI)
	}
	if spec.Firmware == FirmwareEFI && spec.Kernel != "" {
		return invalid("firmware", quoted(spec.Firmware), "no kernel, which is started without firmware")
	}
	if len(spec.UserData) > MaxUserData {
		return invalid("user_data", fmt.Sprintf("of %d bytes", len(spec.UserData)), fmt.Sprintf("at most %d", MaxUserData))
	}
	if !utf8.ValidString(spec.UserData) || strings.ContainsRune(spec.UserData, 0) {
		return invalid("user_data", quoted(spec.UserData), "text in UTF-8")
	}
	return nil
}

func validateDisks(disks []Disk) error {
	if len(disks) > MaxDisks {
		return invalid("disks", strconv.Itoa(len(disks)), fmt.Sprintf("at most %d", MaxDisks))
	}
	seen := make(map[string]int, len(disks))
	for i, disk := range disks {
		field := func(name string) string { return fmt.Sprintf("disks[%d].%s", i, name) }
		if err := validatePlace(field, disk); err != nil {
			return err
		}
		switch disk.Format {
		case "raw", "qcow2":
		default:
			return invalid(field("format"), quoted(disk.Format), "raw or qcow2")
		}
		switch disk.Bus {
		case "virtio", "sata", "scsi":
		default:
			return invalid(field("bus"), quoted(disk.Bus), "virtio, sata or scsi")
		}
		if disk.Volume != "" {
			volume := disk.Pool + "/" + disk.Volume // no path: those begin with /
			if first, twice := seen[volume]; twice {
				return invalid(field("volume"), quoted(disk.Volume), fmt.Sprintf("another volume than disks[%d]", first))
			}
			seen[volume] = i
			continue
		}
		clean := path.Clean(disk.Path)
		if first, twice := seen[clean]; twice {
			return invalid(field("path"), quoted(disk.Path), fmt.Sprintf("another file than disks[%d]", first))
		}
		seen[clean] = i
	}
	return nil
}

// validatePlace checks that a disk is either a file or a volume of a pool.
func validatePlace(field func(string) string, disk Disk) error {
	if disk.Pool == "" && disk.Volume == "" {
		return validatePath(field("path"), disk.Path)
	}
	if disk.Path != "" {
		return invalid(field("path"), quoted(disk.Path), "no path, because there is a volume")
	}
	const longest = 255 // of a file's name
	for _, word := range []struct{ name, value string }{{"pool", disk.Pool}, {"volume", disk.Volume}} {
		if word.value == "" || len(word.value) > longest || strings.Contains(word.value, "/") || !printable(word.value) {
			return invalid(
				field(word.name), quoted(word.value),
				fmt.Sprintf("libvirt's name of it, 1 to %d printable characters without a slash", longest),
			)
		}
	}
	return nil
}

func validateNetworks(networks []string) error {
	if len(networks) > MaxNetworks {
		return invalid("networks", strconv.Itoa(len(networks)), fmt.Sprintf("at most %d", MaxNetworks))
	}
	for i, network := range networks {
		bridge, isBridge := strings.CutPrefix(network, "bridge:")
		const longestInterface = 15 // IFNAMSIZ less its zero
		switch {
		case isBridge && (bridge == "" || len(bridge) > longestInterface || strings.ContainsAny(bridge, "/ ")),
			network == "", len(network) > MaxNameLength, !printable(network):
			return invalid(fmt.Sprintf("networks[%d]", i), quoted(network),
				fmt.Sprintf("a libvirt network's name, or bridge:NAME with a name of at most %d characters", longestInterface))
		}
	}
	return nil
}

func validatePath(field, file string) error {
	if path.IsAbs(file) && len(file) <= MaxPathLength && printable(file) {
		return nil
	}
	return invalid(field, quoted(file), fmt.Sprintf("an absolute path of at most %d printable characters", MaxPathLength))
}

// ValidateText checks a text for people: one line of at most so many printable characters. The error is an *InvalidError.
func ValidateText(field, text string, most int) error {
	want := fmt.Sprintf("one line of at most %d printable characters", most)
	switch n := utf8.RuneCountInString(text); {
	case n > most:
		return invalid(field, fmt.Sprintf("of %d characters", n), want)
	case !printable(text):
		return invalid(field, quoted(text), want)
	}
	return nil
}

// printable refuses control characters and broken UTF-8: the text goes into XML and into logs.
func printable(s string) bool {
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
