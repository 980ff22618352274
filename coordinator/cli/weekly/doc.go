// Package weekly shows what a VM or a node uses at which hour of the week, for the nouns that have such a profile.
package weekly
