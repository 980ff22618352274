package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"berth/coordinator/authorities"
	"berth/coordinator/identities"
	"berth/coordinator/state"
	"berth/shared/pause"
	"berth/shared/pki"
)

// recordEvery is how often the leader writes down who called and has no record.
const recordEvery = 500 * time.Millisecond

// beginLook is how often it looks whether records can begin.
const beginLook = 50 * time.Millisecond

// recognising is a configuration for dialling that refuses coordinators whose keys are not on record.
func (d *daemon) recognising(c *tls.Config) *tls.Config {
	strict := c.Clone()
	strict.VerifyConnection = func(connection tls.ConnectionState) error {
		if err := c.VerifyConnection(connection); err != nil {
			return err
		}
		who, err := pki.BearerOf(connection.PeerCertificates[0])
		if err != nil {
			return err
		}
		return d.consensus.Recognise(who)
	}
	return strict
}

// keepRecords begins the records of identities, once all members know of such, and writes down who is not on record yet. It is
// the leader's work.
func (d *daemon) keepRecords(ctx context.Context) {
	for {
		if err := d.record(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("identities could not be recorded", "error", err)
		}
		wait := recordEvery
		if began, _ := identities.Began(d.store.Snapshot()); !began {
			wait = beginLook
		}
		if !pause.For(ctx, wait) {
			return
		}
	}
}

func (d *daemon) record(ctx context.Context) error {
	x, at := d.store.Snapshot(), time.Now().UTC()
	founders, err := d.founders()
	if err != nil {
		return err
	}
	if began, _ := identities.Began(x); !began {
		if command, due := identities.Begin(x, founders, at); due {
			return d.write(ctx, command, at)
		}
		return nil
	}
	// An init that was interrupted, and run again after the coordinator began, has made another operator.
	if command, due := identities.Found(x, founders, at); due {
		return d.write(ctx, command, at)
	}
	if err := d.forgetFounders(len(founders)); err != nil {
		return err
	}
	own, err := d.bearer()
	if err != nil {
		return err
	}
	if err := (succession{d}).advanceAuthorities(ctx, own, at); err != nil {
		return err
	}
	for _, who := range append(d.keeper.Noted(), own) {
		command, due := authorities.Seen(d.store.Snapshot(), who, at)
		if !due {
			command, due = identities.Record(d.store.Snapshot(), who, at)
		}
		if !due {
			continue
		}
		if err := d.write(ctx, command, at); err != nil {
			return err
		}
		d.log.Info("an identity is written down", "what", command.Kind, "who", who.String(), "id", who.ID)
	}
	return writeRefused(ctx, d, at)
}

// writeRefused has the history tell of calls that were refused here. It is the leader's work; what was refused by a member that does not
// lead waits, as far as there is room, until it does.
func writeRefused(ctx context.Context, d *daemon, at time.Time) error {
	if events := d.keeper.Refused(); len(events) > 0 {
		return propose(ctx, d, state.Command{Kind: "note refused calls", Events: events}, at)
	}
	return nil
}

// write writes down what this member itself has seen.
func (d *daemon) write(ctx context.Context, command state.Command, at time.Time) error {
	for i := range command.Events {
		command.Events[i].Caller = "peer/" + d.who.Name
	}
	return propose(ctx, d, command, at)
}

func propose(ctx context.Context, d *daemon, command state.Command, at time.Time) error {
	command.Key, command.Caller, command.At = newID(), "peer/"+d.who.Name, at
	result, err := d.consensus.Propose(ctx, command)
	if err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale { // it is read again
		err = result.Refusal
	}
	return err
}

// forgetFounders ends that so many founders count by what this member has written of them: they are on record, and whoever of them is
// revoked stays out, however long ago that was.
func (d *daemon) forgetFounders(recorded int) error {
	who, err := d.home.identity()
	if err != nil || recorded == 0 || len(who.Founders) != recorded { // an init has just made another one
		return err
	}
	who.Founders = nil
	return d.home.saveIdentity(who)
}

// founders are who this member made when it made the cluster, until they are on record; none if it did not.
func (d *daemon) founders() (all []pki.Bearer, err error) {
	who, err := d.home.identity()
	if err != nil {
		return nil, err
	}
	for _, certificate := range who.Founders {
		who, err := pki.BearerOfPEM([]byte(certificate))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: a founder: %w", ErrDamaged, d.home.identityFile(), err)
		}
		all = append(all, who)
	}
	return all, nil
}

// bearer is this member by its present certificate.
func (d *daemon) bearer() (pki.Bearer, error) {
	text, err := os.ReadFile(d.home.tls().Certificate)
	if err != nil {
		return pki.Bearer{}, err
	}
	who, err := pki.BearerOfPEM(text)
	if err != nil {
		return who, errors.Join(ErrDamaged, err)
	}
	return who, nil
}
