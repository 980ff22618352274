package faults

import "berth/integration/faults/script"

// endCertificate lets the certificate of a host's agent end: it is out, and its guests run on, until somebody has renewed it.
// FAULTS.md, W18.
func endCertificate(w *World, what script.Happening, h *host) {
	w.Draw(script.Certs)
	h.outdated = true
	h.breakSession(0)
	w.Later(what.For, func() { h.outdated = false })
}
