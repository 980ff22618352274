// Package inventory is the command inventory: what Berth knows, in the forms of other programs.
package inventory
