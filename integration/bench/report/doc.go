// Package report has what was measured: repeated figures, and the table of goals they are compared with.
package report
