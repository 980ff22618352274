package hostpki

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// allowed is the key of libvirt's list of the names that it lets in.
const allowed = "tls_allowed_dn_list"

const (
	begin = "# BEGIN berth-agent: the nodes of the cluster. 'berth-agent libvirt-tls' writes these lines anew."
	end   = "# END berth-agent"
	// aside stands before lines that were there and would contradict.
	aside = "#berth-agent# "
)

// nodeName has nothing that libvirt's patterns or its configuration read as more than a letter.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

var listBegins = regexp.MustCompile(`^\s*` + allowed + `\s*=`)

// withNames is the daemon's configuration with these names as the only ones.
func withNames(text string, names []string) (string, error) {
	if len(names) == 0 {
		return "", errors.New("no node is named: libvirt would let nobody in")
	}
	var quoted []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if !nodeName.MatchString(name) {
			return "", fmt.Errorf("a node is called %q: want letters, digits, dot, dash and underscore", name)
		}
		quoted = append(quoted, `"CN=`+name+`"`)
	}
	lines := cutBlock(lines(text))
	for i, inside := 0, false; i < len(lines); i++ {
		inside = inside || listBegins.MatchString(lines[i])
		if inside {
			inside = !strings.Contains(lines[i], "]")
			lines[i] = aside + lines[i]
		}
	}
	lines = append(lines, begin, allowed+" = ["+strings.Join(quoted, ", ")+"]", end)
	return strings.Join(lines, "\n") + "\n", nil
}

// withoutNames is the configuration as it would be if Berth had never written to it.
func withoutNames(text string) string {
	lines := cutBlock(lines(text))
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, aside)
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// namesIn are the names in Berth's list; nil if there is none.
func namesIn(text string) []string {
	inside := false
	for _, line := range lines(text) {
		switch {
		case line == begin:
			inside = true
		case line == end:
			inside = false
		case inside && listBegins.MatchString(line):
			var names []string
			for _, match := range quotedName.FindAllStringSubmatch(line, -1) {
				names = append(names, match[1])
			}
			return names
		}
	}
	return nil
}

var quotedName = regexp.MustCompile(`"CN=([^"]*)"`)

// foreignList is the first line of a list that somebody else has set.
func foreignList(text string) string {
	for _, line := range cutBlock(lines(text)) {
		if listBegins.MatchString(line) {
			return line
		}
	}
	return ""
}

func lines(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// cutBlock takes Berth's lines out. Where the end is missing only the lines go that Berth can have written.
func cutBlock(all []string) []string {
	var rest []string
	for i := 0; i < len(all); i++ {
		if all[i] != begin {
			rest = append(rest, all[i])
			continue
		}
		if i+1 < len(all) && listBegins.MatchString(all[i+1]) {
			i++
		}
		if i+1 < len(all) && all[i+1] == end {
			i++
		}
	}
	return rest
}
