package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// FenceMethod is a way to prove that a node is off.
type FenceMethod string

// The ways to prove that a node is off. Nothing else counts: silence is not death.
const (
	FenceNone     FenceMethod = ""
	FenceCommand  FenceMethod = "command"  // a fence agent has switched it off and answered that it is
	FenceManual   FenceMethod = "manual"   // an operator says so
	FenceWatchdog FenceMethod = "watchdog" // its last lease has ended, and its watchdog has fired since
)

// FenceDevice says how a node is proven to be off.
type FenceDevice struct {
	Method    FenceMethod       `json:"method,omitempty"`
	Program   string            `json:"program,omitempty"`   // of FenceCommand: name or path of a fence agent
	Arguments map[string]string `json:"arguments,omitempty"` // of FenceCommand: as fence agents read them
	Timeout   time.Duration     `json:"timeout,omitempty"`   // of FenceCommand; 0: the default
	// Machine is the UUID by which the device names the machine, where that is not its firmware's. Since feature level 3.
	Machine string `json:"machine,omitempty"`
	// Also are further devices of FenceCommand, for instance those of other power supplies: the node is off when all of them have said
	// so. Since feature level 3.
	Also []FenceDevice `json:"also,omitempty"`
}

// Bounds of a fence device. Timeout is that of one call of the program; a fencing makes two.
const (
	DefaultFenceTimeout  = time.Minute
	MinFenceTimeout      = time.Second
	MaxFenceTimeout      = 10 * time.Minute
	MaxFenceArguments    = 64
	MaxFenceArgumentText = 4096
	MaxFenceDevices      = 4 // of a node
)

// All are the devices of a node, each by itself: it is off when all of them have said so.
func (d FenceDevice) All() []FenceDevice {
	also := d.Also
	d.Also = nil
	return append([]FenceDevice{d}, also...)
}

// Title names the devices of a node. Of several each is told apart by what it switches.
func (d FenceDevice) Title() string {
	if len(d.Also) == 0 {
		return d.Program
	}
	var titles []string
	for _, one := range d.All() {
		titles = append(titles, one.Target())
	}
	return strings.Join(titles, ", ")
}

// Target is the program of one device, and which machine it switches off.
func (d FenceDevice) Target() string {
	text, target := d.Program, d.target()
	for _, name := range slices.Sorted(maps.Keys(target)) {
		text += " " + name + "=" + target[name]
	}
	return text
}

// Within is how long one call of the program may take.
func (d FenceDevice) Within() time.Duration {
	if d.Timeout == 0 {
		return DefaultFenceTimeout
	}
	return d.Timeout
}

// Masked stands for a secret wherever a device is shown. Given back for an argument, it leaves the secret as it is.
const Masked = "***"

// secretWords are parts of the names of arguments whose values are secrets, unless they only say where the secret is.
var (
	secretWords = []string{
		"passw", "passphrase", "secret", "token", "community", "apikey", "api_key", "api-key", "access_key", "private_key", "credential",
	}
	placeWords = []string{"_script", "_file", "_path"}
)

// Secret tells whether the value of a fence agent's argument is kept from everybody's eyes.
func Secret(argument string) bool {
	has := func(word string) bool { return strings.Contains(argument, word) }
	return slices.ContainsFunc(secretWords, has) &&
		!slices.ContainsFunc(placeWords, func(word string) bool { return strings.HasSuffix(argument, word) })
}

// Masked is the device as it may be shown.
func (d FenceDevice) Masked() FenceDevice {
	d.Arguments = maps.Clone(d.Arguments)
	for name := range d.Arguments {
		if Secret(name) {
			d.Arguments[name] = Masked
		}
	}
	d.Also = slices.Clone(d.Also)
	for i, one := range d.Also {
		d.Also[i] = one.Masked()
	}
	return d
}

// Unmasked is the device with the secrets that known has where only the mask was given. Of several devices each has those of the one
// that switched the same before: sent to another address, a secret would be told to whoever is there.
func (d FenceDevice) Unmasked(known FenceDevice) FenceDevice {
	d.Also = slices.Clone(d.Also)
	all := known.All()
	for i, one := range d.Also {
		if at := slices.IndexFunc(all, one.sameTarget); at >= 0 {
			d.Also[i] = one.Unmasked(all[at])
		}
	}
	known = FenceDevice{}
	if at := slices.IndexFunc(all, d.sameTarget); at >= 0 {
		known = all[at]
	}
	d.Arguments = maps.Clone(d.Arguments)
	for name, value := range d.Arguments {
		if is, there := known.Arguments[name]; there && Secret(name) && value == Masked {
			d.Arguments[name] = is
		}
	}
	return d
}

// aside are arguments of fence agents that do not say which machine is switched off: who asks, and how patiently.
var aside = []string{
	"username", "login", "lanplus", "cipher", "privlvl", "auth", "verbose", "quiet", "delay", "retry_on", "method",
	"ssl", "ssl_secure", "ssl_insecure", "notls", "ssh", "secure", "cmd_prompt", "command_prompt", "snmp_version", "inet4_only", "inet6_only",
}

// renamed are the names that arguments of fence agents had once.
var renamed = map[string]string{"ipaddr": fenceAddress, "port": fencePlug}

// Names of arguments of fence agents.
const (
	fenceAddress = "ip"
	fencePlug    = "plug"
)

// sameTarget tells whether two devices switch off the same machine, as far as their arguments say: they differ at most in who asks and
// how. One board or power strip may be asked by several programs.
func (d FenceDevice) sameTarget(other FenceDevice) bool {
	own := d.target()
	return d.Method == FenceCommand && other.Method == FenceCommand && (d.Program == other.Program || own[fenceAddress] != "") &&
		maps.Equal(own, other.target())
}

// SharedTarget is the device among those of a node that switches off the same machine, or the same of its power supplies, as one of
// another node.
func (d FenceDevice) SharedTarget(other FenceDevice) (FenceDevice, bool) {
	for _, one := range d.All() {
		if slices.ContainsFunc(other.All(), one.sameTarget) {
			return one, true
		}
	}
	return FenceDevice{}, false
}

// SameTargets tells whether the devices of a node switch off what some others do, in the same order.
func (d FenceDevice) SameTargets(other FenceDevice) bool {
	return slices.EqualFunc(d.All(), other.All(), FenceDevice.sameTarget)
}

// target are the arguments that say which machine is switched off.
func (d FenceDevice) target() map[string]string {
	target := map[string]string{}
	for name, value := range d.Arguments {
		if is, known := renamed[name]; known {
			name = is
		}
		if name == fenceAddress {
			value = strings.ToLower(value)
		}
		target[name] = value
	}
	maps.DeleteFunc(target, func(name, _ string) bool {
		return slices.Contains(aside, name) || strings.HasSuffix(name, "_timeout") ||
			slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) })
	})
	return target
}

var (
	fenceProgram  = regexp.MustCompile(`^fence_[A-Za-z0-9][A-Za-z0-9._-]{0,57}$`)
	fenceArgument = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)
)

// fenceFolder is where the files are that fence agents may be told of: what is run there has the rights of all fence agents, and only
// root may say what that is.
const fenceFolder = "/etc/berth/fence"

var fenceFile = regexp.MustCompile(`^` + fenceFolder + `/[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// runs tells that an argument of fence agents says which program is run, how, or which file is written.
func runs(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	if name == "api_path" { // a part of a URL
		return false
	}
	for _, word := range []string{"path", "options", "debug_file", "logfile", "log_file", "command", "shell"} {
		if name == word || strings.HasSuffix(name, "_"+word) {
			return true
		}
	}
	return name == "debug" || name == "sudo" || name == "use_sudo" || name == "exec" || name == "plugin"
}

// isFile tells that an argument names a file that is read or run.
func isFile(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return strings.HasSuffix(name, "_script") || strings.HasSuffix(name, "_file") || name == "keyfile" || name == "file"
}

// isWord tells that an argument becomes a part of a command line of ssh or telnet, which fence agents put together without quotes.
func isWord(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	return slices.Contains([]string{"ip", "ipaddr", "ipport", "username", "login", "user", "port", "plug", "identity_file"}, name)
}

// RunnableFenceDevice checks that a device can be run at all, with one line for each argument. The error is an *InvalidError.
func RunnableFenceDevice(d FenceDevice) error {
	if d.Method != FenceCommand || !fenceProgram.MatchString(d.Program) {
		return invalid("fence program", quoted(d.Program), "the name of a fence agent, for instance fence_ipmilan")
	}
	for name, value := range d.Arguments {
		if !fenceArgument.MatchString(name) || name == "action" || strings.ContainsAny(value, "\n\r\x00") {
			return invalid("fence argument", quoted(name), "one line each, and no action")
		}
	}
	return nil
}

// ValidateFenceDevice checks a device. A program is named, and looked for where the coordinator's machine keeps fence agents:
// setting a device must not make it possible to run anything else there. The error is an *InvalidError.
func ValidateFenceDevice(d FenceDevice) error {
	switch d.Method {
	case FenceNone, FenceManual, FenceWatchdog:
		if !d.Equal(FenceDevice{Method: d.Method}) {
			return invalid("fence", quoted(string(d.Method)), "program, arguments, timeout and machine with method command only")
		}
		return nil
	case FenceCommand:
	default:
		return invalid("fence", quoted(string(d.Method)), "none, manual, watchdog or command")
	}
	all := d.All()
	if len(all) > MaxFenceDevices {
		return invalid("fence devices", fmt.Sprintf("%d of one node", len(all)), fmt.Sprintf("at most %d", MaxFenceDevices))
	}
	for i, one := range all {
		switch {
		case one.Method != FenceCommand || len(one.Also) > 0:
			return invalid("further fence device", quoted(string(one.Method)), "a fence agent with its arguments, and no more of them inside")
		case slices.ContainsFunc(all[:i], one.sameTarget):
			return invalid("further fence device", quoted(one.Target()), "another plug or board than that of the node's other devices")
		}
		if err := validateFenceAgent(one); err != nil {
			return err
		}
	}
	return nil
}

func validateFenceAgent(d FenceDevice) error {
	if !fenceProgram.MatchString(d.Program) {
		return invalid("fence program", quoted(d.Program), "the name of a fence agent, for instance fence_ipmilan")
	}
	if d.Timeout != 0 && (d.Timeout < MinFenceTimeout || d.Timeout > MaxFenceTimeout) {
		return invalid("fence timeout", d.Timeout.String(), fmt.Sprintf("%s to %s", MinFenceTimeout, MaxFenceTimeout))
	}
	if d.Machine != "" && uuidBytes(d.Machine) == nil {
		return invalid("fence machine", quoted(d.Machine), "a UUID, as 'berth node fence NODE --check' shows it")
	}
	if len(d.Arguments) > MaxFenceArguments {
		return invalid("fence arguments", fmt.Sprintf("of %d names", len(d.Arguments)), fmt.Sprintf("at most %d", MaxFenceArguments))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Arguments)) {
		value := d.Arguments[name]
		shown := value
		if Secret(name) {
			shown = Masked
		}
		switch {
		case !fenceArgument.MatchString(name):
			return invalid("fence argument", quoted(name), "a name of letters, digits, dashes and underscores")
		case name == "action" || name == "option":
			return invalid("fence argument", quoted(name), "none of this name: Berth says itself what is to be done")
		case runs(name):
			return invalid("fence argument", quoted(name),
				"none that names a program, its options or a file to write: the fence agent's package says which it runs")
		case isFile(name) && !fenceFile.MatchString(value):
			return invalid("fence argument "+name, quoted(value),
				"a file that root has put into "+fenceFolder+" on each coordinator's machine, without arguments")
		case isWord(name) && (strings.HasPrefix(value, "-") || strings.ContainsAny(value, " \t")):
			return invalid("fence argument "+name, quoted(shown), "one word: fence agents put it into command lines")
		case len(value) > MaxFenceArgumentText || strings.ContainsFunc(value, unicode.IsControl):
			return invalid("fence argument "+name, quoted(shown), fmt.Sprintf("one line of at most %d bytes", MaxFenceArgumentText))
		case Secret(name) && value == Masked:
			return invalid("fence argument "+name, quoted(Masked), "the secret itself: none is known that it could stand for")
		}
	}
	return nil
}

// Equal tells whether two devices are the same.
func (d FenceDevice) Equal(other FenceDevice) bool {
	return d.Method == other.Method && d.Program == other.Program && d.Timeout == other.Timeout && d.Machine == other.Machine &&
		maps.Equal(d.Arguments, other.Arguments) && slices.EqualFunc(d.Also, other.Also, FenceDevice.Equal)
}

// IsZero tells whether there is no device.
func (d FenceDevice) IsZero() bool { return d.Equal(FenceDevice{}) }

// FencingPhase is how far an attempt to prove that a node is off has come.
type FencingPhase string

// The phases of an attempt.
const (
	FencingAsked  FencingPhase = "asked"  // the leader asks the device
	FencingProven FencingPhase = "proven" // the node was off: orders to the incarnation are void
	FencingFailed FencingPhase = "failed" // no proof; it is tried again
)

// Fencing is an attempt to prove that a node is off. It is replicated, so that the next leader goes on with it and two
// never overlap on a node.
type Fencing struct {
	ID      string       `json:"id,omitempty"`
	Phase   FencingPhase `json:"phase,omitempty"`
	Method  FenceMethod  `json:"method,omitempty"`
	Boot    string       `json:"boot,omitempty"`    // of the node, as last heard: the one that is proven to be over
	Attempt int          `json:"attempt,omitempty"` // from 1
	Caller  string       `json:"caller,omitempty"`
	Message string       `json:"message,omitempty"`
	AskedAt time.Time    `json:"asked_at,omitzero"`
	EndedAt time.Time    `json:"ended_at,omitzero"`

	// Struck is the ID of a node that fell silent when this one's device said that it is off, and the boot that it had then:
	// perhaps it was switched off in its place. Since feature level 3.
	Struck     string `json:"struck,omitempty"`
	StruckBoot string `json:"struck_boot,omitempty"`
}

// Fenced tells whether the node is proven to be off, and has not come back since.
func (n *Node) Fenced() bool { return n.Fencing.Phase == FencingProven }
