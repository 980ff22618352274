// Package term is what commands stand on: one invocation with its flags, the session with the coordinators, and how results,
// errors, tables and completions are written. A command is a function of an App.
//
// Results go to the standard output, in the format that -o asks for; json and yaml are the API's own messages. Progress,
// notes and errors go to the standard error, errors as JSON where results would be. The exit code says what came of it:
// see Exit.
package term
