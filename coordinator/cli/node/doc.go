// Package node is the noun node: the hosts, their settings, maintenance, drains and fencing.
package node
