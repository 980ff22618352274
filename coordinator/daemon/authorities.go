package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/authorities"
	"berth/coordinator/model"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
	"berth/shared/pki"
)

// authorityLook is how often a member compares its files with the cluster's authorities.
const authorityLook = 500 * time.Millisecond

// heldAuthority has certificate and key of an authority that is to sign later.
func (p place) heldAuthority(id string) string { return p.file("tls", "authority-"+id+".pem") }

// saveHeld keeps an authority that is to sign later. The one that signs has files of its own.
func (p place) saveHeld(authority *pki.Authority) error {
	key, err := authority.KeyPEM()
	if err != nil {
		return err
	}
	return config.WriteFile(p.heldAuthority(authority.ID()), append(authority.CertificatePEM(), key...), 0o600)
}

// vault has the authorities that the files have.
func (p place) vault(clusterID string) (*answer.Vault, error) {
	issuing, err := p.authority()
	if err != nil {
		return nil, err
	}
	trusted, err := os.ReadFile(p.tls().CA)
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(p.heldAuthority("*"))
	if err != nil {
		return nil, err
	}
	var held []*pki.Authority
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		one, err := pki.LoadAuthorityPair(clusterID, text)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w: copy it from another coordinator, or remove it", ErrDamaged, path, err)
		}
		held = append(held, one)
	}
	return answer.NewVault(issuing, trusted, held, p.saveHeld)
}

// succession is a coordinator's part in the replacement of the cluster's authority.
type succession struct{ *daemon }

// followAuthorities brings this member's files to what the cluster trusts, for as long as the context lasts.
func (d succession) followAuthorities(ctx context.Context) {
	var said string
	for pause.For(ctx, authorityLook) {
		err := d.followOnce(ctx)
		if err == nil || ctx.Err() != nil {
			said = ""
			continue
		}
		if text := err.Error(); text != said { // it is tried again, and said once
			d.log.Warn("the cluster's authorities could not be taken up; it is tried again", "error", err)
			said = text
		}
	}
}

func (d succession) followOnce(ctx context.Context) error {
	list := authorities.Of(d.store.Snapshot())
	if list.OlderThan(d.vault.Issuing().ID(), d.vault.IDs()) {
		list = authorities.List{}
	}
	// What one lacks does not keep the others from what is here.
	return errors.Join(d.takeAuthorities(ctx, &list), d.followHypervisors(), d.followCluster(&list))
}

// followCluster brings this member's files to what is decided of the cluster's own authority.
func (d succession) followCluster(list *authorities.List) error {
	if len(list.All) == 0 {
		return nil
	}
	issuing := d.vault.Held(list.In(authorities.Issuing).ID)
	if issuing == nil {
		return nil // it comes from the leader
	}
	trusted := list.Trusted()
	if issuing == d.vault.Issuing() && bytes.Equal(trusted, d.vault.Trusted()) {
		return nil
	}
	before := d.vault.Issuing()
	if err := d.home.install(d.config, issuing, trusted, time.Now()); err != nil {
		return err
	}
	if err := d.vault.Become(issuing, trusted); err != nil {
		return err
	}
	if before != issuing {
		d.log.Info("another authority signs from now on", "id", issuing.ID())
	}
	d.home.forgetHeld(d.vault)
	d.peers.CloseIdleConnections()
	d.asking.CloseIdleConnections()
	return nil
}

// takeAuthorities gets the keys of authorities that are not here yet from the leader, and tells it which ones are.
func (d succession) takeAuthorities(ctx context.Context, list *authorities.List) error {
	own, err := d.bearer()
	if err != nil {
		return err
	}
	holds, lacks := d.holds(), d.hypervisors.LacksAny(authorities.OfHypervisors(d.store.Snapshot()))
	lacks = append(lacks, list.Lacking(func(id string) bool { return d.vault.Held(id) != nil })...)
	x, now := d.store.Snapshot(), time.Now()
	_, trusts := authorities.Confirm(x, own, holds, now)
	_, follows := authorities.Follow(x, own, authorities.Holding(holds), now)
	if len(lacks) == 0 && !trusts && !follows {
		return nil
	}
	leader, known := d.consensus.Leader()
	if !known {
		return nil
	}
	if leader == d.who.ID {
		return d.takeFromOthers(ctx, list, lacks) // what it holds it writes down by itself
	}
	record, known := d.store.Snapshot().Member(leader)
	if !known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	response, err := d.asks(record).TakeAuthorities(ctx, connect.NewRequest(&berthv1.TakeAuthoritiesRequest{Holds: holds}))
	if err != nil {
		return err
	}
	return d.keepKeys(list, response.Msg.GetAuthoritiesPem(), response.Msg.GetHypervisorsPem())
}

func (d succession) asks(record model.Member) berthv1connect.MemberServiceClient {
	return berthv1connect.NewMemberServiceClient(d.peers, "https://"+record.APIAddress)
}

// takeFromOthers gets the keys that this member lacks, though it leads: somebody has gone on without it, and it was elected before it had
// them. It cannot sign without them, and the others do not need it for that: one of them has them.
func (d succession) takeFromOthers(ctx context.Context, list *authorities.List, lacks []string) error {
	var failures []error
	for _, record := range d.store.Snapshot().Members() {
		lacks = slices.DeleteFunc(lacks, func(id string) bool { return d.vault.Held(id) != nil || d.hypervisors.Held(id) != nil })
		if len(lacks) == 0 {
			return nil
		}
		if record.ID == d.who.ID {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		response, err := d.asks(record).HandAuthorities(asking, connect.NewRequest(&berthv1.HandAuthoritiesRequest{Lacks: lacks}))
		cancel()
		if err == nil {
			err = d.keepKeys(list, response.Msg.GetAuthoritiesPem(), response.Msg.GetHypervisorsPem())
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("coordinator %s: %w", record.Name, err))
		}
	}
	lacks = slices.DeleteFunc(lacks, func(id string) bool { return d.vault.Held(id) != nil || d.hypervisors.Held(id) != nil })
	if len(lacks) == 0 {
		return nil
	}
	return errors.Join(append(failures, fmt.Errorf("this coordinator leads and lacks the key of %s: start one that was there when it was made",
		strings.Join(lacks, ", ")))...)
}

// keepKeys has the keys that another member has given.
func (d succession) keepKeys(list *authorities.List, cluster, hypervisors [][]byte) error {
	for _, text := range cluster {
		one, err := pki.LoadAuthorityPair(d.who.ClusterID, text)
		if err != nil {
			return err
		}
		if list.Named(one.ID()) == nil {
			continue
		}
		if err := d.vault.Keep(one); err != nil {
			return err
		}
	}
	for _, text := range hypervisors {
		if err := d.hypervisors.Take(authorities.OfHypervisors(d.store.Snapshot()), text); err != nil {
			return err
		}
	}
	return nil
}

// holds are the authorities that this member trusts, and whose keys it has, and those of libvirt and QEMU whose keys it has.
func (d succession) holds() []string {
	trusted := slices.DeleteFunc(d.vault.IDs(), func(id string) bool { return d.vault.Held(id) == nil })
	return append(trusted, d.hypervisors.IDs()...)
}

// advanceAuthorities takes the next step in the replacement of an authority when it is due. It is the leader's work.
func (d succession) advanceAuthorities(ctx context.Context, own pki.Bearer, at time.Time) error {
	if command, due := authorities.Adopt(d.store.Snapshot(), d.vault.Issuing(), d.vault.Trusted(), at); due {
		return d.write(ctx, command, at)
	}
	if command, due := authorities.Confirm(d.store.Snapshot(), own, d.holds(), at); due {
		return d.write(ctx, command, at)
	}
	if command, due := d.adoptHypervisors(at); due {
		return d.write(ctx, command, at)
	}
	if command, due := authorities.Follow(d.store.Snapshot(), own, authorities.Holding(d.holds()), at); due {
		return d.write(ctx, command, at)
	}
	if command, due := authorities.Remind(d.store.Snapshot(), d.vault.Issuing(), d.hypervisors.All(), at); due {
		return d.write(ctx, command, at)
	}
	command, due := authorities.Advance(d.store.Snapshot(), at)
	if !due {
		return nil
	}
	d.log.Info("the replacement of the authority goes on", "step", command.Kind)
	return d.write(ctx, command, at)
}

// install writes who signs and who is trusted. At each moment the files fit together: whoever is killed here goes on at the next start.
func (p place) install(c Config, issuing *pki.Authority, trusted []byte, now time.Time) error {
	if _, err := p.keepSealKeys(); err != nil { // of backups that were made with the authority of before
		return err
	}
	present, err := os.ReadFile(p.tls().CA)
	if err != nil {
		return err
	}
	key, err := issuing.KeyPEM()
	if err != nil {
		return err
	}
	before, err := p.authority()
	if err != nil {
		return err
	}
	if before.ID() != issuing.ID() {
		if err := config.WriteFile(p.tls().CA, slices.Concat(trusted, present), 0o600); err != nil {
			return err
		}
		if err := config.WriteFile(p.authorityKey(), key, 0o600); err != nil {
			return err
		}
	}
	if _, err := p.renew(c, now); err != nil {
		return err
	}
	pair, err := pki.LoadPair(p.tls())
	if err != nil {
		return errors.Join(ErrDamaged, err)
	}
	if err := pair.CheckTrusted(trusted); err != nil {
		return err
	}
	return config.WriteFile(p.tls().CA, trusted, 0o600)
}

// forgetHeld removes keys that are not needed any more: the one that signs has a file of its own, and one that was taken back never will.
func (p place) forgetHeld(v *answer.Vault) {
	paths, _ := filepath.Glob(p.heldAuthority("*"))
	for _, path := range paths {
		keep := slices.ContainsFunc(v.IDs(), func(id string) bool {
			return path == p.heldAuthority(id) && v.Held(id) != nil && id != v.Issuing().ID()
		})
		if !keep {
			_ = os.Remove(path) // the next change tries again
		}
	}
}
