package suggestions

import (
	"testing"

	"github.com/spf13/cobra"
)

// instead are words that mean what another verb means already, with that verb.
var instead = map[string]string{
	"create": "add", "make": "add", "register": "add",
	"edit": "set", "change": "set", "update": "set", "modify": "set", "configure": "set",
	"remove": "delete", "rm": "delete", "destroy": "delete", "erase": "delete",
	"ls": "list", "get": "show", "describe": "show", "info": "show",
}

// own are verbs with a meaning of their own.
var own = map[string]string{
	"berth vm edit":                  "opens an editor on a document, where set takes flags",
	"berth-agent libvirt-tls remove": "takes files off the host, which are no resource",
}

// One thing that is done has one verb, whatever it is done to. A word that a verb had before is an alias of the right one.
func TestOneVocabularyOfVerbs(t *testing.T) {
	checked, aliases := 0, 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			checked++
			if verb, wrong := instead[child.Name()]; wrong && own[child.CommandPath()] == "" {
				t.Errorf("%s: the verb is %s everywhere else", child.CommandPath(), verb)
			}
			for _, alias := range child.Aliases {
				aliases++
				if instead[alias] != child.Name() {
					t.Errorf("%s has the alias %s, which is no word for it", child.CommandPath(), alias)
				}
			}
			walk(child)
		}
	}
	for _, program := range programs {
		walk(program())
	}
	if checked < 150 || aliases != 8 {
		t.Errorf("only %d commands with %d aliases are found: this test looks at the wrong place", checked, aliases)
	}
}
