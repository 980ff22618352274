package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrSecret reports a sealed secret that was changed, or that is of something else.
var ErrSecret = errors.New("the sealed secret was changed, or is of something else")

// Secret is a small secret in a record: nobody reads it without the cluster's key.
type Secret struct {
	Key    string `json:"key"` // ID of the key
	Sealed []byte `json:"sealed"`
}

// Hide seals a secret with the newest key. What names the thing that has it: it is opened for that alone. The error is ErrNoKey.
func (k Keys) Hide(what string, secret []byte) (Secret, error) {
	if len(k) == 0 {
		return Secret{}, ErrNoKey
	}
	newest := k[len(k)-1]
	box, err := newest.box()
	if err != nil {
		return Secret{}, err
	}
	nonce := make([]byte, box.NonceSize())
	_, _ = rand.Read(nonce) // never fails: crypto/rand ends the process instead
	return Secret{Key: newest.ID(), Sealed: box.Seal(nonce, nonce, secret, []byte(what))}, nil
}

// Reveal opens a secret. Stale tells that it is sealed with an older key than the newest. The error is ErrSecret, or says that no key is
// here for it.
func (k Keys) Reveal(what string, s Secret) (secret []byte, stale bool, err error) {
	for i := range k {
		if k[i].ID() != s.Key {
			continue
		}
		box, err := k[i].box()
		if err != nil {
			return nil, false, err
		}
		if len(s.Sealed) < box.NonceSize() {
			return nil, false, ErrSecret
		}
		secret, err = box.Open(nil, s.Sealed[:box.NonceSize()], s.Sealed[box.NonceSize():], []byte(what))
		if err != nil {
			return nil, false, ErrSecret
		}
		return secret, i < len(k)-1, nil
	}
	return nil, false, fmt.Errorf("a secret is sealed with key %s: %w", s.Key, errNoSuchKey)
}

var errNoSuchKey = errors.New("this coordinator does not have that key")

// box is what secrets are sealed in. Its key is not that of backups: what proves those opens no secret.
func (k Key) box() (cipher.AEAD, error) {
	sum := hmac.New(sha256.New, k[:])
	sum.Write([]byte("berth secret of a record"))
	block, err := aes.NewCipher(sum.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
