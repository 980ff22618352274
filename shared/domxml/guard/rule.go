package guard

import (
	"regexp"
	"slices"
	"strings"
)

// rule is what is allowed of one element.
type rule struct {
	attributes map[string]*value
	text       *value     // nil: it has none
	needs      Permission // the whole element needs it
	free       bool       // what is in it is nobody's business: libvirt keeps it and does nothing with it
}

// value is what is allowed of an attribute or a text.
type value struct {
	words map[string]Permission // with the permission that a word needs; empty: none
	class string                // one of classes; empty: only words are allowed
	needs Permission            // of all other values
}

// judge is the permission that a text needs here; empty: none.
func (v *value) judge(text string, permitted *Permitted) Permission {
	if needs, known := v.words[text]; known {
		return needs
	}
	if class, known := classes[v.class]; known && class(text, permitted) {
		return ""
	}
	return v.needs
}

// classes are the sorts of value that rules name.
var classes = map[string]func(text string, permitted *Permitted) bool{
	"word":     matches(`[A-Za-z0-9_.:+-]{0,128}`),
	"words":    matches(`[A-Za-z0-9_.,:+ /()-]{0,256}`), // without meaning for the host
	"number":   matches(`\s*-?[0-9]{1,20}\s*`),
	"hex":      matches(`(0x)?[0-9a-fA-F]{1,16}`),
	"onoff":    matches(`on|off|yes|no|default`),
	"uuid":     matches(`\s*[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\s*`),
	"mac":      matches(`[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}`),
	"cpus":     matches(`[0-9,^-]{1,256}`),
	"pty":      matches(`/dev/pts/[0-9]{1,6}`),
	"tap":      matches(`(vnet|macvtap|macvlan)[0-9]{1,9}`),
	"loopback": matches(`127\.0\.0\.1|::1|localhost`),
	"random":   matches(`/dev/urandom|/dev/random`),
	"emulator": matches(`/usr/bin/(qemu-system-[a-z0-9_]+|qemu-kvm|kvm|kvm-spice)|/usr/libexec/qemu-kvm`),
	"channel": folder(
		`/var/lib/libvirt/qemu/channel`, `/run/libvirt/qemu/channel`, `/var/run/libvirt/qemu/channel`,
	),
	"loader": folder(
		"/usr/share/OVMF", "/usr/share/AAVMF", "/usr/share/edk2", "/usr/share/qemu", "/usr/share/seabios", "/usr/share/edk2-ovmf",
		"/usr/share/ovmf",
	),
	"nvram": folder("/var/lib/libvirt/qemu/nvram"),
	"text":  func(text string, _ *Permitted) bool { return printable(strings.TrimSpace(text)) && len(text) <= 4096 },
	"prose": func(text string, _ *Permitted) bool { return len(text) <= 64<<10 }, // many lines
	"file":  func(text string, permitted *Permitted) bool { return permitted.File(text) },
	"pool":  func(text string, permitted *Permitted) bool { return permitted.Pool(text) },
	"volume": func(text string, _ *Permitted) bool {
		return text != "" && text != ".." && !strings.Contains(text, "/") && printable(text) && len(text) <= 255
	},
	"bridge": func(text string, permitted *Permitted) bool { return permitted.Bridge(text) },
}

func matches(pattern string) func(string, *Permitted) bool {
	expression := regexp.MustCompile(`^(?:` + pattern + `)$`)
	return func(text string, _ *Permitted) bool {
		return !strings.HasSuffix(text, "\n") && expression.MatchString(text)
	}
}

func folder(folders ...string) func(string, *Permitted) bool {
	known := Permitted{Folders: folders}
	return func(text string, _ *Permitted) bool { return known.File(text) }
}

// table are the rules by the path of their element.
var table = compile(rules)

// Where a line of rules goes on with the one before: in a list of paths or words, and behind one.
var (
	listed    = regexp.MustCompile(`([,|])\n +`)
	continued = regexp.MustCompile(`\n +`)
)

// compile reads rules, one a line:
//
//	PATH [NAME[=VALUE] ...]   attributes by name
//	PATH #VALUE               the text of the element
//	PATH !PERMISSION          the element as a whole needs it
//	PATH *                    whatever is in it
//
// A line that begins with a space goes on with the one before. A value is words with | between, the last of which may be @CLASS; none:
// @word. A word may need a permission of its own (host?host-devices), and !PERMISSION at the end is what all other values need. Several
// paths have one rule with commas between.
func compile(text string) map[string]rule {
	table := map[string]rule{}
	text = listed.ReplaceAllString(text, "$1")
	text = continued.ReplaceAllString(text, " ")
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		one := rule{attributes: map[string]*value{}}
		for _, field := range fields[1:] {
			switch {
			case field == "*":
				one.free = true
			case strings.HasPrefix(field, "!"):
				one.needs = permission(field[1:])
			case strings.HasPrefix(field, "#"):
				one.text = valueOf(field[1:])
			default:
				name, words, _ := strings.Cut(field, "=")
				if bare, needs, found := strings.Cut(name, "!"); found {
					name, words = bare, "!"+needs
				}
				one.attributes[name] = valueOf(words)
			}
		}
		for path := range strings.SplitSeq(fields[0], ",") {
			if _, twice := table[path]; twice {
				broken("two rules of " + path)
			}
			table[path] = one
		}
	}
	return table
}

func valueOf(text string) *value {
	text, needs, found := strings.Cut(text, "!")
	one := &value{words: map[string]Permission{}, needs: UnknownElements}
	if found {
		one.needs = permission(needs)
	}
	if text == "" && !found {
		one.class = "word"
	}
	for word := range strings.SplitSeq(text, "|") {
		if class, is := strings.CutPrefix(word, "@"); is {
			if classes[class] == nil {
				broken("no class " + class)
			}
			one.class = class
			continue
		}
		word, own, _ := strings.Cut(word, "?")
		if own != "" {
			one.words[word] = permission(own)
		} else if word != "" || strings.Contains(text, "|") {
			one.words[word] = ""
		}
	}
	return one
}

func permission(word string) Permission {
	if one := Permission(word); slices.Contains(Permissions(), one) {
		return one
	}
	broken("no permission " + word)
	return UnknownElements
}

// broken ends the program: the table is a part of it, and every test of this package reads it.
func broken(what string) { panic("guard: " + what) } //nolint:forbidigo // see above
