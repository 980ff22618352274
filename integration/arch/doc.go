// Package arch holds the laws of the code as tests: what may import what, what stays pure, how files and packages are
// named. Each table row gives the reason for its rule; a rule is changed there and nowhere else.
package arch
