package lab

import "testing"

// doing gives the lab's operator orders that have to work, and returns what each one says.
func (l *Lab) doing(t *testing.T) func(args ...string) string {
	return func(args ...string) string {
		t.Helper()
		said, err := l.Berth(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
		return said
	}
}

// starting is the order that starts a guest of the lab. A flag that comes once more with the rest counts as it stands there.
func starting(guest, memory string, rest ...string) []string {
	order := []string{"vm", "start", guest, "--memory", memory, "--kernel", Kernel, "--initrd", Initrd, "--cmdline", Cmdline}
	return append(order, rest...)
}
