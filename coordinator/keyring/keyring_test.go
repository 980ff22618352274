package keyring

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/coordinator/authorities"
	"berth/shared/pki"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// folder is a coordinator's folder, with the cluster's authority and the list of those of libvirt.
type folder struct {
	*testing.T
	dir     string
	cluster *pki.Authority
	next    *pki.HypervisorAuthority
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{T: t, dir: t.TempDir()}
	var err error
	if f.cluster, err = pki.NewAuthority("c1", noon); err != nil {
		t.Fatal(err)
	}
	if f.next, err = pki.NewHypervisorAuthority("c1", pki.Control, noon); err != nil {
		t.Fatal(err)
	}
	if err := Found(f.dir, "c1", noon); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *folder) open() *Ring {
	f.Helper()
	r, err := Open(f.dir, f.cluster)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func (f *folder) names() (names []string) {
	f.Helper()
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func (f *folder) follow(r *Ring, list *authorities.List, want bool) {
	f.Helper()
	if changed, err := r.Follow(pki.Control, list); err != nil || changed != want {
		f.Fatalf("another one signs: %v, %v, want %v", changed, err, want)
	}
}

// signs checks who signs, here and after a start.
func (f *folder) signs(r *Ring, list *authorities.List, want *pki.HypervisorAuthority, trusted ...*pki.HypervisorAuthority) {
	f.Helper()
	var text []byte
	for _, one := range trusted {
		text = append(text, one.CertificatePEM()...)
	}
	for when, r := range map[string]*Ring{"now": r, "after a start": f.open()} {
		signer, trusts, known := r.Signer(pki.Control, list)
		if !known || signer.ID() != want.ID() || !bytes.Equal(trusts, text) {
			f.Errorf("%s it is not %s that signs, or hosts trust others than %d", when, authorities.Short(want.ID()), len(trusted))
		}
		if r.Issuing(pki.Control).ID() != want.ID() || !bytes.Equal(r.Trusted(pki.Control), text) {
			f.Errorf("%s the files say otherwise", when)
		}
	}
}

func list(states ...any) *authorities.List {
	l := &authorities.List{}
	for i := 0; i < len(states); i += 2 {
		one := authorities.OwnHypervisor(states[i].(*pki.HypervisorAuthority))
		one.State = states[i+1].(authorities.State)
		l.All = append(l.All, one)
	}
	return l
}

func TestTheFilesFollowWhatIsDecided(t *testing.T) {
	f := newFolder(t)
	r := f.open()
	first, next := r.Issuing(pki.Control), f.next
	other := r.Issuing(pki.Data)
	f.signs(r, list(), first, first)
	announced := list(first, authorities.Issuing, next, authorities.Announced)
	if lacks := r.Lacks(announced); !slices.Equal(lacks, []string{next.ID()}) {
		t.Errorf("it lacks %v", lacks)
	}
	if err := r.Keep(next); err != nil {
		t.Fatal(err)
	}
	if lacks := f.open().Lacks(announced); len(lacks) > 0 || !slices.Contains(f.open().IDs(), next.ID()) {
		t.Errorf("after a start it lacks %v", lacks)
	}
	f.follow(r, announced, false)
	f.signs(r, announced, first, first, next)
	issuing := list(first, authorities.Outgoing, next, authorities.Issuing)
	f.follow(r, issuing, true)
	f.signs(r, issuing, next, next, first)
	f.follow(r, issuing, false)
	retired := list(first, authorities.Retired, next, authorities.Issuing)
	f.follow(r, retired, false)
	f.signs(r, retired, next, next)
	if want := []string{
		"hypervisor-control-trusted.pem", "hypervisor-control.pem", "hypervisor-data-trusted.pem", "hypervisor-data.pem",
	}; !slices.Equal(f.names(), want) {
		t.Errorf("the files are %v, want %v", f.names(), want)
	}
	if r.Issuing(pki.Data).ID() != other.ID() {
		t.Error("QEMU's authority was replaced too")
	}
}

func TestAnAuthorityThatWasTakenBackIsForgotten(t *testing.T) {
	f := newFolder(t)
	r := f.open()
	first := r.Issuing(pki.Control)
	if err := r.Keep(f.next); err != nil {
		t.Fatal(err)
	}
	back := list(first, authorities.Issuing, f.next, authorities.Retired)
	f.follow(r, back, false)
	f.signs(r, back, first, first)
	if r.Held(f.next.ID()) != nil || len(f.names()) != 4 {
		t.Errorf("its key is still here: %v", f.names())
	}
}

// A member that does not have the key of the one that signs makes no certificates with the one before, and waits for it.
func TestNobodySignsForAnother(t *testing.T) {
	f := newFolder(t)
	r := f.open()
	first := r.Issuing(pki.Control)
	for _, before := range []authorities.State{authorities.Outgoing, authorities.Retired} {
		issuing := list(first, before, f.next, authorities.Issuing)
		f.follow(r, issuing, false)
		if _, _, known := r.Signer(pki.Control, issuing); known {
			t.Errorf("an authority that is %s signs", before)
		}
		if lacks := r.Lacks(issuing); !slices.Equal(lacks, []string{f.next.ID()}) {
			t.Errorf("it lacks %v", lacks)
		}
	}
}

// A list that was restored is older than the files: nothing goes back by it.
func TestAnOlderListChangesNoFile(t *testing.T) {
	f := newFolder(t)
	r := f.open()
	first, next := r.Issuing(pki.Control), f.next
	if err := r.Keep(next); err != nil {
		t.Fatal(err)
	}
	f.follow(r, list(first, authorities.Outgoing, next, authorities.Issuing), true)
	retired := list(first, authorities.Retired, next, authorities.Issuing)
	f.follow(r, retired, false)
	for name, old := range map[string]*authorities.List{
		"where it was announced":    list(first, authorities.Issuing, next, authorities.Announced),
		"where it was not known":    list(first, authorities.Issuing),
		"where another was trusted": list(first, authorities.Outgoing, next, authorities.Issuing),
	} {
		f.follow(r, old, false)
		if _, _, known := r.Signer(pki.Control, old); known {
			t.Errorf("a list %s says who signs", name)
		}
		f.signs(r, retired, next, next)
	}
}

// A coordinator that joins in the middle of a replacement is given who is trusted with who signs.
func TestWhoJoinsInTheMiddleTrustsTheOneBeforeToo(t *testing.T) {
	f := newFolder(t)
	first := f.open().Issuing(pki.Control)
	text, err := f.next.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(f.dir, pki.Control, text, slices.Concat(f.next.CertificatePEM(), first.CertificatePEM())); err != nil {
		t.Fatal(err)
	}
	f.signs(f.open(), list(first, authorities.Outgoing, f.next, authorities.Issuing), f.next, f.next, first)
}

// A coordinator that is killed between its two files goes on at the next start.
func TestAKilledMemberGoesOn(t *testing.T) {
	f := newFolder(t)
	r := f.open()
	first, next := r.Issuing(pki.Control), f.next
	if err := r.Keep(next); err != nil {
		t.Fatal(err)
	}
	f.follow(r, list(first, authorities.Issuing, next, authorities.Announced), false)
	text, err := next.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.dir, "hypervisor-control.pem"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	issuing := list(first, authorities.Outgoing, next, authorities.Issuing)
	r = f.open()
	f.follow(r, issuing, false)
	f.signs(r, issuing, next, next, first)
}

// A cluster that is older than these authorities has none in its files: they follow from the key of the cluster's.
func TestAllMembersOfAnOlderClusterMakeTheSame(t *testing.T) {
	cluster, err := pki.NewAuthority("c1", noon)
	if err != nil {
		t.Fatal(err)
	}
	one, other := &folder{T: t, dir: t.TempDir(), cluster: cluster}, &folder{T: t, dir: t.TempDir(), cluster: cluster}
	if !slices.Equal(one.open().IDs(), other.open().IDs()) || !slices.Equal(one.open().IDs(), one.open().IDs()) {
		t.Error("two members have made two")
	}
	if err := os.WriteFile(filepath.Join(one.dir, "hypervisor-data.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(one.dir, cluster); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
}
