// Package cli is the command line of Berth: one file per noun. It talks to the API and to nothing else, so whatever it
// can do a program can do as well.
//
// Results go to the standard output, in the format that -o asks for; json and yaml are the API's own messages. Progress,
// notes and errors go to the standard error, errors as JSON where results would be. The exit code says what came of it:
// see Exit.
package cli
