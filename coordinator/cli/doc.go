// Package cli is the command line of Berth. It puts the commands together, of which each noun has a package, and turns an
// error into text and an exit code. Commands talk to the API and to nothing else, so that a program can do whatever the
// command line does. The nouns do not import each other: what they share is in term, follow, explanation and keyform.
package cli
