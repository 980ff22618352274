package seal

import (
	"bytes"
	"errors"
	"testing"
)

func TestASecretIsOpenedForItsThingAndByItsKeysAlone(t *testing.T) {
	t.Parallel()
	older, newer := Key{1}, Key{2}
	hidden, err := Keys{older}.Hide("webhook/a", []byte("secret"))
	if err != nil || bytes.Contains(hidden.Sealed, []byte("secret")) {
		t.Fatal(hidden, err)
	}
	if got, stale, err := (Keys{older, newer}).Reveal("webhook/a", hidden); err != nil || string(got) != "secret" || !stale {
		t.Errorf("%q, stale %t, %v", got, stale, err)
	}
	if _, stale, err := (Keys{older}).Reveal("webhook/a", hidden); err != nil || stale {
		t.Errorf("stale %t, %v", stale, err)
	}
	if _, _, err := (Keys{older}).Reveal("webhook/b", hidden); !errors.Is(err, ErrSecret) {
		t.Errorf("it was opened for another thing: %v", err)
	}
	if _, _, err := (Keys{newer}).Reveal("webhook/a", hidden); err == nil {
		t.Error("it was opened without its key")
	}
	hidden.Sealed[len(hidden.Sealed)-1] ^= 1
	if _, _, err := (Keys{older}).Reveal("webhook/a", hidden); !errors.Is(err, ErrSecret) {
		t.Errorf("it was changed, and opened: %v", err)
	}
	if _, err := (Keys{}).Hide("webhook/a", nil); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
}
