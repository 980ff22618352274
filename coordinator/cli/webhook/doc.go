// Package webhook is the noun webhook: addresses that are sent what happens.
package webhook
