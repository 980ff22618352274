package domxml

import (
	"slices"
	"strings"
	"testing"
)

const domainCapabilities = `<domainCapabilities><domain>kvm</domain><arch>x86_64</arch><cpu>
  <mode name='host-passthrough' supported='PASSED'/>
  <mode name='host-model' supported='yes'><model fallback='forbid'>EPYC-Rome</model><vendor>AMD</vendor>FEATURES</mode>
  <mode name='custom' supported='yes'>
    <model usable='yes' vendor='AMD'>Opteron_G2</model><model usable='no' vendor='Intel'>Icelake-Server</model>
    <model usable='yes' vendor='Intel'>Nehalem</model><model usable='unknown'>Odd</model>
  </mode></cpu></domainCapabilities>`

func TestCPUs(t *testing.T) {
	read := func(replacements ...string) GuestCPUs {
		t.Helper()
		got, err := ParseCPUs(strings.NewReplacer(append(replacements, "PASSED", "yes")...).Replace(domainCapabilities))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	const x2apic, hle = "<feature policy='require' name='x2apic'/>", "<feature policy='disable' name='hle'/>"
	got := read("FEATURES", x2apic+hle)
	if !slices.Equal(got.Models, []string{"Nehalem", "Opteron_G2"}) {
		t.Errorf("models %v", got.Models)
	}
	if !strings.HasPrefix(got.Host, "EPYC-Rome-") || got.Host != read("FEATURES", hle+x2apic).Host {
		t.Errorf("fingerprint %q depends on the order, or has no name", got.Host)
	}
	if got.Host == read("FEATURES", x2apic).Host || got.Host == read("FEATURES", x2apic+hle, "AMD", "Hygon").Host {
		t.Errorf("fingerprint %q is that of another CPU as well", got.Host)
	}
	if got := read("FEATURES", "", "PASSED", "no"); got.Host != "" || len(got.Models) != 2 {
		t.Errorf("where nothing is passed through: %+v", got)
	}
	if got, err := ParseCPUs("<domainCapabilities/>"); err != nil || got.Host != "" || got.Models != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ParseCPUs("<"); err == nil {
		t.Error("what is no XML was read")
	}
}
