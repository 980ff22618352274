package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
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
}

// Bounds of a fence device. Timeout is that of one call of the program; a fencing makes two.
const (
	DefaultFenceTimeout  = time.Minute
	MinFenceTimeout      = time.Second
	MaxFenceTimeout      = 10 * time.Minute
	MaxFenceArguments    = 64
	MaxFenceArgumentText = 4096
)

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
	secretWords = []string{"passw", "secret", "token", "community"}
	placeWords  = []string{"_script", "_file", "_path"}
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
	return d
}

// Unmasked is the device with the secrets that known has where only the mask was given.
func (d FenceDevice) Unmasked(known FenceDevice) FenceDevice {
	d.Arguments = maps.Clone(d.Arguments)
	for name, value := range d.Arguments {
		if is, there := known.Arguments[name]; there && Secret(name) && value == Masked {
			d.Arguments[name] = is
		}
	}
	return d
}

// aside are arguments of fence agents that do not say which machine is switched off: who asks, and how patiently.
var aside = []string{"username", "login", "lanplus", "cipher", "privlvl", "auth", "verbose", "quiet", "delay", "retry_on", "method"}

// SameTarget tells whether two devices switch off the same machine, as far as their arguments say: they differ at most in
// who asks and how.
func (d FenceDevice) SameTarget(other FenceDevice) bool {
	return d.Method == FenceCommand && other.Method == FenceCommand && d.Program == other.Program && maps.Equal(d.target(), other.target())
}

// target are the arguments that say which machine is switched off.
func (d FenceDevice) target() map[string]string {
	target := maps.Clone(d.Arguments)
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

// ValidateFenceDevice checks a device. A program is named, and looked for where the coordinator's machine keeps fence agents:
// setting a device must not make it possible to run anything else there. The error is an *InvalidError.
func ValidateFenceDevice(d FenceDevice) error {
	switch d.Method {
	case FenceNone, FenceManual, FenceWatchdog:
		if d.Program != "" || len(d.Arguments) > 0 || d.Timeout != 0 || d.Machine != "" {
			return invalid("fence", quoted(string(d.Method)), "program, arguments, timeout and machine with method command only")
		}
		return nil
	case FenceCommand:
	default:
		return invalid("fence", quoted(string(d.Method)), "none, manual, watchdog or command")
	}
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
		case len(value) > MaxFenceArgumentText || strings.ContainsAny(value, "\n\r\x00"):
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
		maps.Equal(d.Arguments, other.Arguments)
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
