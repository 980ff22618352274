// Package top is the noun top: what nodes and VMs use at the moment, as their agents last measured it.
package top
