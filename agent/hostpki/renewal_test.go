package hostpki

import (
	"testing"
	"time"

	"berth/shared/pki"
)

func TestACertificateIsRenewedWithAThirdOfItsTimeLeft(t *testing.T) {
	at := time.Now()
	authority, err := pki.NewHypervisorAuthority("c1", pki.Control, at)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewHypervisorAuthority("c1", pki.Control, at)
	if err != nil {
		t.Fatal(err)
	}
	request, _, err := pki.NewRequest("hv1")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Sign(request, "hv1", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	if mustRenew(certificate, authority.CertificatePEM(), at.Add(pki.HypervisorValidity/2)) {
		t.Error("renewed at half time")
	}
	if !mustRenew(certificate, authority.CertificatePEM(), at.Add(pki.HypervisorValidity*3/4)) {
		t.Error("not renewed with a quarter left")
	}
	if !mustRenew(certificate, other.CertificatePEM(), at) || !mustRenew(nil, authority.CertificatePEM(), at) {
		t.Error("kept what the cluster's authority has not signed")
	}
}
