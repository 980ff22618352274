// Package guard judges domain documents: what of one puts something onto a host, beside a disk from a known place and a known network. It
// is pure. Its rules are a list of what is allowed. An element, an attribute or a value that is not in the list needs a permission, also if
// libvirt learns it only later.
package guard
