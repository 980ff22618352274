// Package suggestions checks the commands that messages of Berth's programs tell people to run.
package suggestions
