package pki

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrToken reports a text that is not a whole token.
var ErrToken = errors.New("the token is cut or mistyped; run 'berth token add' again")

// The purposes of a token: what its user becomes.
const (
	PurposeAgent       = "agent"
	PurposeCoordinator = "coordinator"
	PurposeOperator    = "operator"
)

// Token lets one machine or person enrol. It carries the fingerprint of the authority, so that the secret is sent only
// to a coordinator of the right cluster.
type Token struct {
	Purpose       string
	Secret        string
	CAFingerprint string
}

const (
	tokenVersion = "berth1"
	secretBytes  = 32
)

var secretText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewToken makes a token with a secret of 256 random bits: the text to give away, and the hash of the secret, which is
// all that the cluster keeps.
func NewToken(purpose, caFingerprint string) (text, secretHash string, err error) {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // crypto/rand never fails: it ends the program instead
	secret := secretText.EncodeToString(raw)
	text = strings.Join([]string{tokenVersion, purpose, secret, caFingerprint}, ".")
	if _, err := ParseToken(text); err != nil {
		return "", "", fmt.Errorf("make a token for %q with fingerprint %q: not a purpose or not a fingerprint", purpose, caFingerprint)
	}
	return text, HashSecret(secret), nil
}

// ParseToken reads the text of a token. White space around it is ignored. The error is ErrToken.
func ParseToken(text string) (Token, error) {
	parts := strings.Split(strings.TrimSpace(text), ".")
	if len(parts) != 4 || parts[0] != tokenVersion {
		return Token{}, ErrToken
	}
	token := Token{Purpose: parts[1], Secret: parts[2], CAFingerprint: parts[3]}
	switch token.Purpose {
	case PurposeAgent, PurposeCoordinator, PurposeOperator:
	default:
		return Token{}, ErrToken
	}
	secret, err := secretText.DecodeString(token.Secret)
	if err != nil || len(secret) != secretBytes {
		return Token{}, ErrToken
	}
	sum, err := hex.DecodeString(token.CAFingerprint)
	if err != nil || len(sum) != sha256.Size || strings.ToLower(token.CAFingerprint) != token.CAFingerprint {
		return Token{}, ErrToken
	}
	return token, nil
}

// HashSecret is the lower-case hex SHA-256 of a token's secret. The secret has full entropy, so it needs no salt.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
