// Package vm is the noun vm: it declares, starts, moves, stops and explains VMs.
package vm
