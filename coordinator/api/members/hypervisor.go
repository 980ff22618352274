package members

import (
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// handHypervisors gives a new member the authorities of the nodes' libvirt and QEMU: whichever member leads signs for the nodes.
func (s *Calls) handHypervisors(response *berthv1.EnrolResponse) error {
	for purpose, into := range map[pki.Purpose]*[]byte{
		pki.Control: &response.ControlAuthorityPem, pki.Data: &response.DataAuthorityPem,
	} {
		authority := s.Hypervisors[purpose]
		if authority == nil {
			continue
		}
		text, err := authority.PEM()
		if err != nil {
			return err
		}
		*into = text
	}
	return nil
}
