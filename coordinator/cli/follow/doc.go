// Package follow waits until an operation or a plan has ended, shows its progress on the way, and says what came of it.
package follow
