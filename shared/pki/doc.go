// Package pki is the identity of everything that speaks in Berth: a small certificate authority for each cluster, the
// certificates that name coordinators (peers), agents and operators, the TLS settings that check them, and the one-use
// tokens by which a machine without a certificate asks for one.
//
// A certificate says who its holder is in one URI, berth://CLUSTER_ID/ROLE/ID; the common name is the name for people.
// Keys are ECDSA P-256, connections TLS 1.3. Certificates are dated back ten minutes, so that a new one works on a
// machine whose clock is a little behind.
package pki
