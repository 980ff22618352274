// Package group is the noun group: which VMs stay together or apart, and on which nodes.
package group
