package members

import (
	"context"
	"fmt"
	"math"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

const (
	maxTokenLife = time.Hour
	// TokensKept is how long a token is remembered after it expired, so that a late try can be told why it fails.
	TokensKept = 24 * time.Hour
	// maxSweep bounds how many old tokens one command forgets.
	maxSweep = 100
)

// CreateToken makes a token with which one machine or person can enrol, once. The answer is the only place where its
// secret ever stands.
func (s *Calls) CreateToken(
	ctx context.Context, request *connect.Request[berthv1.CreateTokenRequest],
) (*connect.Response[berthv1.CreateTokenResponse], error) {
	const usage = "see 'berth token create --help'"
	message := request.Msg
	purpose := model.Purpose(message.GetPurpose())
	switch purpose {
	case model.PurposeAgent, model.PurposeCoordinator, model.PurposeOperator:
	default:
		return nil, refusal.Invalid("token", usage, fmt.Errorf("a token for %q: use agent, coordinator or operator", purpose))
	}
	if message.GetName() != "" {
		if err := answer.CheckName(string(purpose), message.GetName()); err != nil {
			return nil, refusal.Invalid("token", usage, err)
		}
	}
	life, err := tokenLife(message.GetTtlSeconds())
	if err != nil {
		return nil, refusal.Invalid("token", usage, err)
	}
	fingerprint, err := pki.Fingerprint(s.Authority.CertificatePEM())
	if err != nil {
		return nil, fmt.Errorf("read the cluster's own authority: %w", err)
	}
	text, hash, err := pki.NewToken(string(purpose), fingerprint)
	if err != nil {
		return nil, err
	}
	var expires time.Time
	p, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		expires = p.At.Add(life)
		command := state.Command{
			Kind:   "create token",
			Expect: []state.Expectation{{Table: state.Tokens, ID: hash}},
			Tokens: []model.Token{{
				Hash: hash, Purpose: purpose, Name: message.GetName(), CreatedBy: gate.CallerOf(ctx).String(), ExpiresAt: expires,
			}},
			Events: []model.Event{p.Event(ctx, "token.created", "token/"+hash[:8], "%s", tokenText(purpose, message.GetName(), life))},
		}
		sweepTokens(p, &command)
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.CreateTokenResponse{
		SchemaVersion: wire.SchemaVersion,
		Token:         text,
		ExpiresAt:     timestamppb.New(expires),
		Command:       s.joinCommand(p, purpose, text),
	}), nil
}

func tokenLife(seconds float64) (time.Duration, error) {
	switch {
	case seconds == 0:
		return maxTokenLife, nil
	case math.IsNaN(seconds) || seconds < 1 || seconds > maxTokenLife.Seconds():
		return 0, fmt.Errorf("a life of %g s is not between 1 and %g", seconds, maxTokenLife.Seconds())
	default:
		return time.Duration(seconds * float64(time.Second)), nil
	}
}

func tokenText(purpose model.Purpose, name string, life time.Duration) string {
	if name != "" {
		return fmt.Sprintf("for %s %s, for %s", purpose, name, life)
	}
	return fmt.Sprintf("for one %s, for %s", purpose, life)
}

// sweepTokens makes the command forget what expired long ago.
func sweepTokens(p *answer.Moment, command *state.Command) {
	for _, token := range p.Tokens() {
		if len(command.Delete) == maxSweep {
			return
		}
		if p.At.Sub(token.ExpiresAt) > TokensKept {
			command.Expect = append(command.Expect, expectToken(token))
			command.Delete = append(command.Delete, state.Record{Table: state.Tokens, ID: token.Hash})
		}
	}
}

func expectToken(token model.Token) state.Expectation {
	return state.Expectation{Table: state.Tokens, ID: token.Hash, Revision: token.Revision}
}

// joinCommand is the line to run on the other machine.
func (s *Calls) joinCommand(p *answer.Moment, purpose model.Purpose, token string) string {
	member, _ := p.Member(s.Self)
	switch purpose {
	case model.PurposeAgent:
		return fmt.Sprintf("berth-agent join %s %s", member.APIAddress, token)
	case model.PurposeCoordinator:
		return fmt.Sprintf("berth coordinator join %s %s", member.APIAddress, token)
	default:
		return fmt.Sprintf("berth login %s %s", member.APIAddress, token)
	}
}
