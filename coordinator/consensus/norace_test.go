//go:build !race

package consensus

// raceDetected tells that everything is about ten times slower.
const raceDetected = false
