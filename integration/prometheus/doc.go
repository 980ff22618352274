// Package prometheus lets a real Prometheus, Debian's package, read a lab: coordinators and the agents of real hosts, as a customer's
// would, with the rules, the dashboard and the discovery of targets that are shipped.
package prometheus
