package chaos

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
)

// background is a context for putting things back, when the test's own has ended.
func (s *site) background() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), commandLimit)
	s.Cleanup(cancel)
	return ctx
}

// ignore drops a value for its error.
func ignore[T any](_ T, err error) error { return err }

// on runs any command on any machine to its end. One that does not end by itself within 20 s fails the test.
func (s *site) on(m *lab.Machine, argv ...string) lab.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	cmd, err := m.Command(ctx, argv...)
	s.must(err)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		s.Fatalf("%s on %s: %v\n%s%s", strings.Join(argv, " "), m.Name, err, stdout.String(), stderr.String())
	}
	return lab.Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// says runs a command on a machine and checks how it ends and what it says.
func (s *site) says(m *lab.Machine, argv []string, code int, words ...string) {
	s.Helper()
	s.check(argv, s.on(m, argv...), code, words...)
}

// edit changes a file of a machine and puts it back at the end of the test.
func (s *site) edit(m *lab.Machine, path string, change func(string) string) {
	s.Helper()
	outside := m.Path(path)
	info, err := os.Stat(outside)
	s.must(err)
	before, err := os.ReadFile(outside)
	s.must(err)
	s.Cleanup(func() { s.must(os.WriteFile(outside, before, info.Mode())) })
	s.must(os.WriteFile(outside, []byte(change(string(before))), info.Mode()))
}

func TestAnUnknownKeyIsRefusedWithFileAndLine(t *testing.T) {
	s := begin(t)
	for _, c := range []struct {
		machine *lab.Machine
		file    string
		argv    []string
	}{
		{s.lab.Coordinators[0].Machine, "/etc/berth/coordinator.yaml", []string{"berth", "coordinator", "run"}},
		{s.lab.Hosts[0].Machine, "/etc/berth/agent.yaml", []string{"berth-agent", "run"}},
		{s.lab.Hosts[0].Machine, "/etc/berth/agent.yaml", []string{"berth-agent", "doctor"}},
		{s.lab.Operator, "/etc/berth/client.yaml", []string{"berth", "status"}},
	} {
		s.sub(strings.Join(c.argv, " "), func(s *site) {
			s.edit(c.machine, c.file, func(text string) string { return "# a comment\nlog_levle: debug\n" + text })
			s.says(c.machine, c.argv, 1, c.file+":2:", "log_levle")
		})
		s.sub(strings.Join(c.argv, " ")+" of no YAML", func(s *site) {
			s.edit(c.machine, c.file, func(text string) string { return text + "\n\tname: [\n" })
			s.says(c.machine, c.argv, 1, c.file+":")
		})
	}
}

func TestAValueThatCannotBeMeantIsRefusedWithItsKey(t *testing.T) {
	s := begin(t)
	for _, c := range []struct {
		machine   *lab.Machine
		file      string
		key, want string
		argv      []string
	}{
		{s.lab.Coordinators[0].Machine, "/etc/berth/coordinator.yaml", "log_level: loud", "log_level", []string{"berth", "coordinator", "run"}},
		{
			s.lab.Coordinators[0].Machine, "/etc/berth/coordinator.yaml", "listen: {api: nowhere}", "listen.api",
			[]string{"berth", "coordinator", "run"},
		},
		{s.lab.Coordinators[0].Machine, "/etc/berth/coordinator.yaml", "name: another", "another", []string{"berth", "coordinator", "run"}},
		{s.lab.Hosts[0].Machine, "/etc/berth/agent.yaml", "virt_type: xen", "virt_type", []string{"berth-agent", "run"}},
		{s.lab.Hosts[0].Machine, "/etc/berth/agent.yaml", "coordinators: [nowhere]", "nowhere", []string{"berth-agent", "run"}},
		{s.lab.Hosts[0].Machine, "/etc/berth/agent.yaml", "minimum_libvirt: newest", "minimum_libvirt", []string{"berth-agent", "run"}},
		{s.lab.Hosts[0].Machine, "/etc/berth/agent.yaml", "migration_uri: ':'", "migration_uri", []string{"berth-agent", "run"}},
	} {
		s.sub(c.key, func(s *site) {
			name, _, _ := strings.Cut(c.key, ":")
			s.edit(c.machine, c.file, func(text string) string {
				var kept []string
				inside := false
				for line := range strings.Lines(text) {
					if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "-") {
						inside = strings.HasPrefix(line, name+":")
					}
					if !inside {
						kept = append(kept, line)
					}
				}
				return strings.Join(kept, "") + c.key + "\n"
			})
			s.says(c.machine, c.argv, 1, c.want)
		})
	}
}
