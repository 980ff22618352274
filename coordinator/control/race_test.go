//go:build race

package control

// raceDetected tells that everything is about ten times slower.
const raceDetected = true
