// Package operation is the noun operation: it lists, shows, follows, stops and resolves operations.
package operation
