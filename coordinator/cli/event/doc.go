// Package event is the command that lists and follows the events of the cluster.
package event
