// Package members answers the calls about who belongs to the cluster: enrolment with tokens, the coordinators, and the snapshots
// that carry all records from one cluster to another.
package members
