// Package script says what happens in a run: a seed, a site, and the wishes and faults that come to it. Generate makes the script of
// a seed, and Shrink makes one that fails as small as it still fails.
package script
