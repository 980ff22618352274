// Package authorities replaces the authority that signs the cluster's certificates, without a call that is refused. It is pure: what is
// due follows from a moment of the replicated state, so that whichever member leads goes on.
//
// A new authority is announced first: everybody comes to trust it, and it signs nothing. Once all have said that they do, it signs, and
// what the one before has signed is renewed. Once nobody depends on that one any more it is retired: trusted no longer.
package authorities
