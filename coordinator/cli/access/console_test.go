package access_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
)

// Where there is a display the desktop opens the console. The address is a secret: it stands in a file that only its owner reads, and
// not on a command line. A desktop that opens nothing leaves it to the person.
func TestTheDesktopOpensTheConsole(t *testing.T) {
	for name, c := range map[string]struct {
		exit    string // of the desktop
		printed bool
	}{
		"it opens":      {"0", false},
		"it opens none": {"1", true},
	} {
		t.Run(name, func(t *testing.T) {
			tools, own := t.TempDir(), t.TempDir()
			script := "#!/bin/sh\necho \"$@\" >" + filepath.Join(own, "asked") + "\nexit " + c.exit + "\n"
			if err := os.WriteFile(filepath.Join(tools, "xdg-open"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
			w, _ := clitest.NewSite(t, clitest.Steady())
			w.Env = map[string]string{"DISPLAY": ":0", "XDG_RUNTIME_DIR": own}
			said := w.Run("console")
			const address = "https://coord1:7423/login/4c9m.secret"
			if said.Exit != term.Done || strings.Contains(said.Out, address) != c.printed || !strings.Contains(said.Out+said.ErrOut, "7e1f0c") {
				t.Errorf("exit %d, %s, %s", said.Exit, said.Out, said.ErrOut)
			}
			page := filepath.Join(own, "berth-console.html")
			asked, err := os.ReadFile(filepath.Join(own, "asked"))
			if err != nil || strings.TrimSpace(string(asked)) != page {
				t.Errorf("the desktop was asked for %q, %v", asked, err)
			}
			leads, err := os.ReadFile(page)
			if err != nil || !strings.Contains(string(leads), "url="+address+`"`) {
				t.Errorf("it leads on by %s, %v", leads, err)
			}
			if is, err := os.Stat(page); err != nil || is.Mode().Perm() != 0o600 {
				t.Errorf("who may read it: %v, %v", is, err)
			}
		})
	}
}
