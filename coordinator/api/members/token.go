package members

import (
	"context"
	"fmt"
	"math"
	"slices"
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
	"berth/shared/rpc"
)

const (
	maxTokenLife = time.Hour
	// TokensKept is how long a token is remembered after it expired, so that a late try can be told why it fails.
	TokensKept = 24 * time.Hour
	// maxSweep bounds how many old tokens one command forgets.
	maxSweep = 100
)

// CreateToken makes a token with which a machine or person can enrol, once or as often as is asked for. The answer is the
// only place where its secret ever stands.
func (s *Calls) CreateToken(
	ctx context.Context, request *connect.Request[berthv1.CreateTokenRequest],
) (*connect.Response[berthv1.CreateTokenResponse], error) {
	const usage = "see 'berth token add --help'"
	message := request.Msg
	purpose := model.Purpose(message.GetPurpose())
	switch purpose {
	case model.PurposeAgent, model.PurposeCoordinator, model.PurposeOperator:
	default:
		return nil, refusal.Invalid("token", usage, fmt.Errorf("a token for %q: use agent, coordinator or operator", purpose))
	}
	made := model.Token{
		Purpose: purpose, Name: message.GetName(), CreatedBy: gate.CallerOf(ctx).String(), Uses: int(message.GetUses()),
	}
	if err := checkToken(&made); err != nil {
		return nil, refusal.Invalid("token", usage, err)
	}
	life, err := tokenLife(message.GetTtlSeconds())
	if err != nil {
		return nil, refusal.Invalid("token", usage, err)
	}
	fingerprint, err := pki.Fingerprint(s.Authority().CertificatePEM())
	if err != nil {
		return nil, fmt.Errorf("read the cluster's own authority: %w", err)
	}
	text, hash, err := pki.NewToken(string(purpose), fingerprint)
	if err != nil {
		return nil, err
	}
	made.Hash = hash
	p, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		made.ExpiresAt = p.At.Add(life)
		if err := givenByToken(ctx, p, &made, message.GetPermit()); err != nil {
			return state.Command{}, err
		}
		command := state.Command{
			Kind:   "create token",
			Expect: []state.Expectation{{Table: state.Tokens, ID: hash}},
			Tokens: []model.Token{made},
			Events: []model.Event{p.Event(ctx, "token.created", "token/"+tokenID(&made), "%s", tokenText(&made, life))},
		}
		asRead(p, &command, gate.CallerOf(ctx).ID)
		sweepTokens(p, &command)
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.CreateTokenResponse{
		SchemaVersion: wire.SchemaVersion,
		Token:         text,
		ExpiresAt:     timestamppb.New(made.ExpiresAt),
		Command:       s.joinCommand(p, &made, text),
	}), nil
}

// checkToken judges what a token is to be good for. A token for one use says nothing of uses, as every release reads it.
func checkToken(made *model.Token) error {
	if made.Name != "" && !made.Pattern() {
		if err := answer.CheckName(string(made.Purpose), made.Name); err != nil {
			return err
		}
	}
	if made.Pattern() {
		if err := model.ValidateNamePattern(string(made.Purpose), made.Name); err != nil {
			return err
		}
	}
	if err := model.ValidateTokenUses(made.Uses); err != nil {
		return err
	}
	if made.Uses > 1 && made.Name != "" && !made.Pattern() {
		return fmt.Errorf("a token for %d uses and the one name %q: a name joins once, so give a pattern like %q",
			made.Uses, made.Name, made.Name+"*")
	}
	if made.Uses == 1 {
		made.Uses = 0
	}
	return nil
}

// tokenID is a word for a token that lets nobody in.
func tokenID(token *model.Token) string { return token.Hash[:min(8, len(token.Hash))] }

// ListTokens answers with the tokens that the cluster remembers.
func (s *Calls) ListTokens(
	ctx context.Context, request *connect.Request[berthv1.ListTokensRequest],
) (*connect.Response[berthv1.ListTokensResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListTokensResponse{SchemaVersion: wire.SchemaVersion}
	part, next := answer.Cut(p.Tokens(), page, answer.Ascending, func(token model.Token) string { return token.Hash })
	response.NextPageToken = next
	for i := range part {
		response.Tokens = append(response.Tokens, tokenMessage(&part[i]))
	}
	return connect.NewResponse(response), nil
}

// RevokeToken forgets a token. Its next use is refused as that of a token that never was.
func (s *Calls) RevokeToken(
	ctx context.Context, request *connect.Request[berthv1.RevokeTokenRequest],
) (*connect.Response[berthv1.RevokeTokenResponse], error) {
	id := request.Msg.GetId()
	var revoked model.Token
	_, err := s.Propose(ctx, request.Msg.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		all := p.Tokens()
		at := slices.IndexFunc(all, func(t model.Token) bool { return tokenID(&t) == id })
		if at < 0 {
			return state.Command{}, refusal.New(rpc.NotFound, "token/"+id, "'berth token list' shows those that are good",
				"there is no token %q: it was revoked, or has expired long ago", id)
		}
		revoked = all[at]
		return state.Command{
			Kind:   "revoke token",
			Expect: []state.Expectation{expectToken(revoked)},
			Delete: []state.Record{{Table: state.Tokens, ID: revoked.Hash}},
			Events: []model.Event{p.Event(ctx, "token.revoked", "token/"+id, "%s: it lets nobody in any more", revokedText(&revoked))},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RevokeTokenResponse{SchemaVersion: wire.SchemaVersion, Token: tokenMessage(&revoked)}), nil
}

func revokedText(token *model.Token) string {
	text := "for " + string(token.Purpose)
	if token.Name != "" {
		text += " named " + token.Name
	}
	return fmt.Sprintf("%s, with %d of %d uses left", text, token.Left(), max(1, token.Uses))
}

func tokenMessage(token *model.Token) *berthv1.Token {
	message := &berthv1.Token{
		Id: tokenID(token), Purpose: string(token.Purpose), Name: token.Name, Uses: int32(max(1, token.Uses)), UsesLeft: int32(token.Left()),
		ExpiresAt: timestamppb.New(token.ExpiresAt), CreatedBy: token.CreatedBy, Permit: token.Permit,
	}
	for _, use := range token.Used {
		message.UsedBy = append(message.UsedBy, use.Name)
	}
	if len(token.Used) == 0 && token.UsedBy != "" {
		message.UsedBy = []string{token.UsedBy}
	}
	return message
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

func tokenText(token *model.Token, life time.Duration) string {
	whom := "one " + string(token.Purpose)
	if token.Uses > 1 {
		whom = fmt.Sprintf("%d uses, each for one %s", token.Uses, token.Purpose)
	}
	if token.Name != "" {
		whom += " named " + token.Name
	}
	if token.Permit != "" {
		whom += ", who may put onto hosts " + permitText(token.Permit)
	}
	return fmt.Sprintf("for %s, for %s", whom, life)
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

// joinCommand is the line to run on the other machine. It hands the token over on standard input: 'echo' is part of the shell, and
// what stands on the command line of a program is seen by every account of the machine.
func (s *Calls) joinCommand(p *answer.Moment, made *model.Token, token string) string {
	member, _ := p.Member(s.Self)
	verb := "berth login"
	switch made.Purpose {
	case model.PurposeAgent:
		verb = "berth-agent join"
	case model.PurposeCoordinator:
		verb = "berth coordinator join"
	case model.PurposeOperator:
	}
	line := fmt.Sprintf("echo %s | %s %s -", token, verb, member.APIAddress)
	if made.Name != "" && !made.Pattern() {
		line += " --name " + made.Name
	}
	return line
}
