// Package adversary plays those who want to do harm, against the real listeners with real certificates: agents whose host was taken
// over, nodes that were removed, strangers. It needs no lab. .github/SECURITY.md says which test shows what.
package adversary
