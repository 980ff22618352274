package daemon

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"berth/coordinator/seal"
	"berth/shared/config"
)

// keptSealKeys is how many keys of backups are remembered. There is a new one each time when the authority is replaced.
const keptSealKeys = 16

// sealFile has the keys of this cluster's backups, the newest last. Each follows from the key of the cluster's authority at that time, so
// every coordinator comes to the same one, and whoever keeps the tls directory can prove what a backup holds.
func (p place) sealFile() string { return p.file("tls", "backup.keys") }

// sealKeys are the keys that this member remembers, and the one that follows from the present authority last. The error is ErrDamaged.
func (p place) sealKeys() (seal.Keys, error) {
	keys, _, err := p.readSealKeys()
	return keys, err
}

// readSealKeys is sealKeys, and tells whether the file does not have them all yet.
func (p place) readSealKeys() (keys seal.Keys, changed bool, err error) {
	known, err := p.rememberedSealKeys()
	if err != nil {
		return nil, false, err
	}
	authority, err := p.authority()
	if err != nil {
		return nil, false, err
	}
	now, err := authority.Secret("berth backup seal")
	if err != nil {
		return nil, false, err
	}
	keys = slices.DeleteFunc(slices.Clone(known), func(k seal.Key) bool { return k == now })
	keys = append(keys, now)
	keys = keys[max(0, len(keys)-keptSealKeys):]
	return keys, !slices.Equal(known, keys), nil
}

func (p place) rememberedSealKeys() (seal.Keys, error) {
	data, err := os.ReadFile(p.sealFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the keys of backups: %w", err)
	}
	var keys seal.Keys
	for line := range strings.Lines(string(data)) {
		var key seal.Key
		if n, err := hex.Decode(key[:], []byte(fmt.Sprintf("%.64s", strings.TrimSpace(line)))); err != nil || n != len(key) {
			return nil, fmt.Errorf("%w: %s has a line that is no key: move it away, and backups of before the authority was replaced "+
				"are proved no more", ErrDamaged, p.sealFile())
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// keepSealKeys is sealKeys, and remembers what is new: the authority may be replaced.
func (p place) keepSealKeys() (seal.Keys, error) {
	keys, changed, err := p.readSealKeys()
	if err != nil || !changed {
		return keys, err
	}
	var text strings.Builder
	for _, key := range keys {
		text.WriteString(hex.EncodeToString(key[:]) + "\n")
	}
	if err := config.WriteFile(p.sealFile(), []byte(text.String()), 0o600); err != nil {
		return nil, fmt.Errorf("remember the key of backups: %w", err)
	}
	return keys, nil
}
