// Package identities judges who may speak to the cluster. A certificate counts if the cluster's authority has signed it, which TLS has
// checked before, and if the record of a live identity has its key, which is looked up here. It is pure: what is asked is a moment of the
// replicated state, so that every member can answer, without a leader too.
package identities
