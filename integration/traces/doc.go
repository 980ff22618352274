// Package traces checks that a collector of OpenTelemetry understands what coordinators and agents send it, by the schema that
// OpenTelemetry itself publishes, and that the parts of an operation from both are one trace.
package traces
