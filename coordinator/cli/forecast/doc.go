// Package forecast is the commands that say what would be: capacity, and simulate.
package forecast
