// Package explanation writes for people why a VM was placed where it is, or why no node fits. The nouns decision and vm
// show it, and so does the error of a refused start.
package explanation
