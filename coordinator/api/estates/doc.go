// Package estates answers the calls about what people declare: resources of all kinds, groups, keys, and a whole estate at once. The
// content of disks and images belongs to it, because a disk is declared and deleted like any other resource. Package estate
// judges what may be declared; this package reads the request, commits the change and says what was done.
package estates
