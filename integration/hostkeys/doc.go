// Package hostkeys proves that guests can move between any two hosts in each phase of the replacement of libvirt's or QEMU's authority. The
// state, the coordinator's keys and the hosts' files are real and the certificates are checked by TLS; time is virtual.
package hostkeys
