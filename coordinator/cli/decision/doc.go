// Package decision is the noun decision: it lists, shows and replays placement decisions.
package decision
