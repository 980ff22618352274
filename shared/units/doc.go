// Package units reads and prints sizes and durations the way administrators write them.
package units
