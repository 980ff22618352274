// Package domxml reads and writes libvirt's domain and capabilities XML. It is pure: text in, values or text out.
//
// Both sides of Berth need it. The coordinator checks an administrator's XML before it commits anything; the agent
// renders a VM's XML and marks every domain that Berth runs with its identity. That mark is the element berth:vm in the
// domain's metadata; libvirt keeps it, carries it along in a migration and leaves it out of its ABI check, so it is where
// a domain's epoch is found again whatever happened to Berth.
package domxml
