package members

import (
	"context"
	"errors"

	"berth/coordinator/api/answer"
	"berth/coordinator/authorities"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

// handHypervisors gives a new member the authorities of the nodes' libvirt and QEMU: whichever member leads signs for the nodes.
func (s *Calls) handHypervisors(response *berthv1.EnrolResponse) error {
	for purpose, into := range map[pki.Purpose]struct{ authority, trusted *[]byte }{
		pki.Control: {&response.ControlAuthorityPem, &response.ControlTrustedPem},
		pki.Data:    {&response.DataAuthorityPem, &response.DataTrustedPem},
	} {
		authority := s.Hypervisors.Issuing(purpose)
		if authority == nil {
			continue
		}
		text, err := authority.PEM()
		if err != nil {
			return err
		}
		*into.authority, *into.trusted = text, s.Hypervisors.Trusted(purpose)
	}
	return nil
}

// nextHypervisor is the authority of libvirt or QEMU that is to follow the one that signs now.
func (s *Calls) nextHypervisor(purpose pki.Purpose, imported bool) (*successor, error) {
	if imported {
		err := errors.New("only the cluster's authority comes from outside: those of libvirt and QEMU sign for hosts alone, and are made here")
		return nil, unfit("leave the certificate and the key out", err)
	}
	next, err := pki.NewHypervisorAuthority(s.Authority().ClusterID(), purpose, s.Now())
	if err != nil {
		return nil, err
	}
	return &successor{
		keep: func() error { return s.Hypervisors.Keep(next) },
		announce: func(p *answer.Moment, by string) (state.Command, error) {
			present, _, known := s.Hypervisors.Signer(purpose, authorities.OfHypervisors(p.Snapshot).For(purpose))
			if !known {
				return state.Command{}, errors.New("this coordinator does not have the key of the one that signs yet")
			}
			return authorities.AnnounceHypervisor(p.Snapshot, purpose, present, next, by, p.At)
		},
	}, nil
}

// hypervisorAuthorities are those of libvirt and QEMU as messages.
func (s *Calls) hypervisorAuthorities(p *answer.Moment) (all []*berthv1.Authority, err error) {
	lists := authorities.OfHypervisors(p.Snapshot)
	for _, purpose := range pki.Purposes {
		present := s.Hypervisors.Issuing(purpose)
		if present == nil {
			continue
		}
		for _, one := range lists.For(purpose).OrOwn(authorities.OwnHypervisor(present)).All {
			shown, err := authority(authorities.Called(purpose), &one)
			if err != nil {
				return nil, err
			}
			all = append(all, shown)
		}
	}
	return all, nil
}

// FollowHypervisor writes down how far a node follows the replacement of an authority of libvirt or QEMU.
func (s *Calls) FollowHypervisor(ctx context.Context, who pki.Bearer, says map[string]authorities.Use) error {
	// Who leads no more may have an older list, and hosts would trust fewer than they have to: so the leadership is proven first.
	p, err := s.Verified(ctx)
	if err != nil {
		return err
	}
	if _, due := authorities.Follow(p.Snapshot, who, says, p.At); !due {
		return nil
	}
	_, err = s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		command, due := authorities.Follow(p.Snapshot, who, says, p.At)
		if !due {
			return state.Command{}, answer.ErrUnchanged
		}
		return command, nil
	})
	return err
}
