package domxml

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"libvirt.org/go/libvirtxml"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const uuid = "11111111-2222-4333-8444-555555555555"

var identity = Identity{UUID: uuid, Name: "web-1", Mark: Mark{Epoch: 7, Operation: "op-9", Node: "node-3"}}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update if that is meant:\n%s", path, diff)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRender(t *testing.T) {
	for name, c := range map[string]struct {
		spec    Spec
		machine Machine
	}{
		"kernel-qemu": {
			Spec{MemoryBytes: 128 << 20, VCPUs: 1, Kernel: "/boot/vmlinuz", Initrd: "/boot/initrd", Cmdline: `console=ttyS0 x="<1>"`},
			Machine{DomainType: VirtQEMU, Arch: "x86_64", Type: "q35"},
		},
		"disks-kvm": {
			Spec{
				MemoryBytes: 4 << 30, VCPUs: 4, Networks: []string{"default", "bridge:br0"},
				Disks: []Disk{
					{Path: "/srv/a.qcow2", Format: "qcow2", Bus: "virtio"},
					{Path: "/dev/vg/b", Format: "raw", Bus: "scsi"},
					{Path: "/srv/c.iso", Format: "raw", Bus: "sata", ReadOnly: true},
					{Path: "/srv/d.raw", Format: "raw", ReadOnly: true},
				},
			},
			Machine{DomainType: VirtKVM, Arch: "x86_64", Type: "q35"},
		},
		"disk-arm": {
			Spec{MemoryBytes: 1 << 30, VCPUs: 2, Disks: []Disk{{Path: "/srv/a.qcow2", Format: "qcow2"}}},
			Machine{DomainType: VirtKVM, Arch: "aarch64", Type: "virt"},
		},
		"headroom-kvm": {
			Spec{MemoryBytes: 2 << 30, VCPUs: 2, MaxMemoryBytes: 8 << 30, MaxVCPUs: 6, Kernel: "/boot/vmlinuz"},
			Machine{DomainType: VirtKVM, Arch: "x86_64", Type: "q35"},
		},
		"no-headroom-kvm": {
			Spec{MemoryBytes: 2 << 30, VCPUs: 2, MaxMemoryBytes: 1 << 30, MaxVCPUs: 2, Kernel: "/boot/vmlinuz"},
			Machine{DomainType: VirtKVM, Arch: "x86_64", Type: "q35"},
		},
		"volumes-kvm": {
			Spec{
				MemoryBytes: 1 << 30, VCPUs: 2, Machine: "pc", Firmware: FirmwareEFI, CPU: "Haswell-noTSX",
				Disks: []Disk{
					{Pool: "shared", Volume: "berth-0abc.qcow2", Format: "qcow2", Serial: "0abc"},
					{Pool: "local", Volume: "berth-0abd.qcow2", Format: "qcow2", Bus: "scsi", Serial: "0abd"},
					{Pool: "shared", Volume: "berth-x-seed.iso", Format: "raw", ReadOnly: true},
				},
			},
			Machine{DomainType: VirtKVM, Arch: "x86_64", Type: "q35"},
		},
		"cpu-qemu": {
			Spec{MemoryBytes: 1 << 30, VCPUs: 1, CPU: "Westmere", Firmware: FirmwareBIOS},
			Machine{DomainType: VirtQEMU, Arch: "x86_64", Type: "q35"},
		},
		"passthrough-kvm": {
			Spec{MemoryBytes: 1 << 30, VCPUs: 1, CPU: CPUHostPassthrough},
			Machine{DomainType: VirtKVM, Arch: "x86_64", Type: "q35"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(c.spec, identity, c.machine)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".xml", got+"\n")
			info, err := Parse(got)
			if err != nil {
				t.Fatalf("what Render writes, Parse refuses: %v", err)
			}
			machineType := c.machine.Type
			if c.spec.Machine != "" {
				machineType = c.spec.Machine
			}
			want := Info{
				Name: identity.Name, UUID: uuid, Type: c.machine.DomainType, Arch: c.machine.Arch, Machine: machineType,
				MemoryBytes: max(c.spec.MemoryBytes, c.spec.MaxMemoryBytes), VCPUs: max(c.spec.VCPUs, c.spec.MaxVCPUs),
				Passthrough: strings.Contains(got, `mode="host-passthrough"`),
			}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Errorf("Parse of the rendered document (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	good := Spec{MemoryBytes: 1 << 20, VCPUs: 1}
	for name, c := range map[string]struct {
		change func(*Spec, *Identity)
		want   string
	}{
		"memory":        {func(s *Spec, _ *Identity) { s.MemoryBytes = 0 }, "memory is 0 bytes"},
		"vcpus":         {func(s *Spec, _ *Identity) { s.VCPUs = -1 }, "-1 vCPUs"},
		"initrd alone":  {func(s *Spec, _ *Identity) { s.Initrd = "/i" }, "without a kernel"},
		"relative path": {func(s *Spec, _ *Identity) { s.Kernel = "k" }, `"k" is not absolute`},
		"disk path":     {func(s *Spec, _ *Identity) { s.Disks = []Disk{{Path: "a", Format: "raw"}} }, `"a" is not absolute`},
		"disk format":   {func(s *Spec, _ *Identity) { s.Disks = []Disk{{Path: "/a", Format: "vmdk"}} }, "write raw or qcow2"},
		"disk bus":      {func(s *Spec, _ *Identity) { s.Disks = []Disk{{Path: "/a", Format: "raw", Bus: "ide"}} }, "write virtio, sata or scsi"},
		"volume":        {func(s *Spec, _ *Identity) { s.Disks = []Disk{{Volume: "a", Format: "raw"}} }, `volume "a" has no pool`},
		"volume format": {func(s *Spec, _ *Identity) { s.Disks = []Disk{{Pool: "p", Volume: "a"}} }, "disk p/a: format"},
		"serial": {func(s *Spec, _ *Identity) {
			s.Disks = []Disk{{Path: "/a", Format: "raw", Serial: strings.Repeat("x", 21)}}
		}, "longer than 20"},
		"passthrough": {func(s *Spec, _ *Identity) { s.CPU = CPUHostPassthrough }, "runs guests in software"},
		"firmware":    {func(s *Spec, _ *Identity) { s.Firmware = "uefi" }, "write bios or efi"},
		"network":     {func(s *Spec, _ *Identity) { s.Networks = []string{"bridge:"} }, "bridge:NAME"},
		"uuid":        {func(_ *Spec, id *Identity) { id.UUID = "web" }, "not a UUID"},
		"name":        {func(_ *Spec, id *Identity) { id.Name = "a/b" }, "no slash"},
		"epoch":       {func(_ *Spec, id *Identity) { id.Mark.Epoch = 0 }, "epochs start at 1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, id := good, identity
			c.change(&spec, &id)
			_, err := Render(spec, id, Machine{DomainType: VirtQEMU, Arch: "x86_64"})
			if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an ErrSpec that says %q", err, c.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	got, err := Parse(read(t, "migratable.xml"))
	if err != nil {
		t.Fatal(err)
	}
	want := Info{Name: "vm1", UUID: uuid, Type: "qemu", Arch: "x86_64", Machine: "pc-i440fx-7.2", MemoryBytes: 128 << 20, VCPUs: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseMemoryUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"<memory>1024</memory>":                              1 << 20,
		"<memory unit='b'>4096</memory>":                     4096,
		"<memory unit='KB'>1000</memory>":                    1_000_000,
		"<memory unit='k'>1</memory>":                        1 << 10,
		"<memory unit='MiB'> 512 </memory>":                  512 << 20,
		"<memory unit='G'>2</memory>":                        2 << 30,
		"<memory unit='TiB' dumpCore='off'>1</memory>":       1 << 40,
		"<memory>1</memory><currentMemory>0</currentMemory>": 1 << 10,
	} {
		info, err := Parse("<domain type='kvm'>" + text + "</domain>")
		if err != nil || info.MemoryBytes != want {
			t.Errorf("%s: got %d, %v, want %d", text, info.MemoryBytes, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const memory = "<memory>1024</memory>"
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "no <domain> element"},
		"not XML":         {"hello", "no <domain> element"},
		"cut off":         {"<domain type='kvm'>\n<name>x", "line 2: unexpected EOF"},
		"wrong end":       {"<domain>\n<name>x</nam>\n</domain>", "line 2: element <name> closed by </nam>"},
		"other root":      {"<network/>", "the top element is <network>"},
		"two roots":       {"<domain type='kvm'>" + memory + "</domain>\n<domain/>", "line 2: a second top element"},
		"entity":          {"<!DOCTYPE d [<!ENTITY a 'b'>]><domain>&a;</domain>", "document type"},
		"unknown entity":  {"<domain>&a;</domain>", "line 1: invalid character entity &a;"},
		"other charset":   {"<?xml version='1.0' encoding='utf-16'?><domain/>", "utf-16"},
		"no type":         {"<domain>" + memory + "</domain>", "type='kvm' or type='qemu'"},
		"other type":      {"<domain type='xen'>" + memory + "</domain>", `domain type "xen"`},
		"no memory":       {"<domain type='kvm'></domain>", "no <memory>"},
		"memory word":     {"<domain type='kvm'>\n<memory>much</memory></domain>", "line 2: <memory> \"much\""},
		"memory zero":     {"<domain type='kvm'>\n\n<memory>0</memory></domain>", "line 3: <memory> \"0\""},
		"memory negative": {"<domain type='kvm'>\n<memory>-5</memory></domain>", "line 2: <memory> \"-5\""},
		"memory unit":     {"<domain type='kvm'><memory unit='lb'>5</memory></domain>", `unit "lb"`},
		"memory absurd":   {"<domain type='kvm'><memory unit='E'>9000</memory></domain>", "beyond any machine"},
		"two memories":    {"<domain type='kvm'>" + memory + "\n" + memory + "</domain>", "line 2: a second <memory>"},
		"vcpu word":       {"<domain type='kvm'>" + memory + "<vcpu>two</vcpu></domain>", "line 1: <vcpu> \"two\""},
		"vcpu zero":       {"<domain type='kvm'>" + memory + "<vcpu>0</vcpu></domain>", "<vcpu>"},
		"vcpu absurd":     {"<domain type='kvm'>" + memory + "<vcpu>70000</vcpu></domain>", "from 1 to 65535"},
		"uuid":            {"<domain type='kvm'>" + memory + "\n<uuid>abc</uuid></domain>", `line 2: <uuid> "abc"`},
		"too long":        {"<domain>" + strings.Repeat(" ", MaxBytes) + "</domain>", "at most 262144"},
		"too deep":        {"<domain>" + strings.Repeat("<a>", 40) + strings.Repeat("</a>", 40) + "</domain>", "deeper than 32"},
		"too many tokens": {"<domain>" + strings.Repeat("<a/>", 11_000) + "</domain>", "20000 XML tokens"},
		"attribute clash": {"<domain type='kvm'>" + memory + "<vcpu current='x'>1</vcpu></domain>", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(c.text)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an ErrInvalid that says %q", err, c.want)
			}
		})
	}
}

func TestWithIdentityChangesNothingElse(t *testing.T) {
	original := read(t, "migratable.xml")
	marked, err := WithIdentity(original, identity)
	if err != nil {
		t.Fatal(err)
	}
	if mark, ok := Metadata(marked); !ok || mark != identity.Mark {
		t.Errorf("mark is %+v, %v, want %+v", mark, ok, identity.Mark)
	}
	// Undo the three changes by hand: every byte must be back.
	back := strings.NewReplacer(
		"<name>web-1</name>", "<name>vm1</name>",
		identity.Mark.element(), Mark{Epoch: 1, Operation: "op-1", Node: "node-1"}.element(),
	).Replace(marked)
	if diff := cmp.Diff(original, back); diff != "" {
		t.Errorf("more than the identity changed:\n%s", diff)
	}
}

func TestWithIdentityFindsItsPlace(t *testing.T) {
	mark := identity.Mark.element()
	head := "<name>web-1</name>\n  <uuid>" + uuid + "</uuid>"
	for name, c := range map[string]struct{ text, want string }{
		"nothing there": {
			"<domain type='kvm'><memory>1</memory></domain>",
			"<domain type='kvm'>\n  " + head + "\n  <metadata>" + mark + "</metadata><memory>1</memory></domain>",
		},
		"a replacement where others are inserted": {
			"<domain><name>a</name></domain>",
			"<domain>\n  <uuid>" + uuid + "</uuid>\n  <metadata>" + mark + "</metadata><name>web-1</name></domain>",
		},
		"empty metadata": {
			"<domain><name>a</name><uuid>b</uuid><metadata/></domain>",
			"<domain><name>web-1</name><uuid>" + uuid + "</uuid><metadata>" + mark + "</metadata></domain>",
		},
		"someone else's metadata stays": {
			"<domain><name/><uuid>b</uuid><metadata><x:y xmlns:x='urn:x'/></metadata></domain>",
			"<domain><name>web-1</name><uuid>" + uuid + "</uuid><metadata><x:y xmlns:x='urn:x'/>" + mark + "</metadata></domain>",
		},
		"old marks go, whatever their prefix": {
			"<domain><name>a</name><uuid>b</uuid><metadata><vm xmlns='" + Namespace + "' epoch='1'>z</vm><k:vm xmlns:k='" + Namespace +
				"'/></metadata></domain>",
			"<domain><name>web-1</name><uuid>" + uuid + "</uuid><metadata>" + mark + "</metadata></domain>",
		},
		"names further down stay": {
			"<domain><devices><name>d</name></devices><name>a</name><uuid>b</uuid><metadata/></domain>",
			"<domain><devices><name>d</name></devices><name>web-1</name><uuid>" + uuid + "</uuid><metadata>" + mark + "</metadata></domain>",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := WithIdentity(c.text, identity)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, text := range []string{"<domain/>", "<domain><name>a</name><name>b</name></domain>", "<domain>"} {
		if _, err := WithIdentity(text, identity); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", text, err)
		}
	}
}

// Whatever name or operation ID there is, it survives the way into a document and back through a real XML parser.
func TestIdentityRoundTrip(t *testing.T) {
	base := read(t, "migratable.xml")
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-zA-Z0-9<>&"' .:_é-]{1,40}`).Filter(func(s string) bool { return strings.TrimSpace(s) == s })
		id := Identity{UUID: uuid, Name: word.Draw(t, "name"), Mark: Mark{
			Epoch: rapid.Uint64Min(1).Draw(t, "epoch"), Operation: word.Draw(t, "operation"), Node: word.Draw(t, "node"),
		}}
		marked, err := WithIdentity(base, id)
		if err != nil {
			t.Fatal(err)
		}
		var model libvirtxml.Domain
		if err := model.Unmarshal(marked); err != nil {
			t.Fatal(err)
		}
		mark, ok := Metadata(marked)
		if model.Name != id.Name || model.UUID != id.UUID || !ok || mark != id.Mark {
			t.Fatalf("got %q %q %+v, want %+v", model.Name, model.UUID, mark, id)
		}
		again, err := WithIdentity(marked, id)
		if err != nil || again != marked {
			t.Fatalf("doing it twice is not doing it once: %v", err)
		}
	})
}

func TestMetadataOfStrangers(t *testing.T) {
	for _, text := range []string{
		"<domain><name>a</name></domain>",
		"<domain><metadata><vm epoch='3'/></metadata></domain>",
		"<domain><metadata><b:vm xmlns:b='" + Namespace + "' epoch='0'/></metadata></domain>",
		"<domain><metadata><b:vm xmlns:b='" + Namespace + "' epoch='many'/></metadata></domain>",
		"<domain><devices><b:vm xmlns:b='" + Namespace + "' epoch='3'/></devices></domain>",
		"nonsense",
	} {
		if mark, ok := Metadata(text); ok {
			t.Errorf("%s: got %+v, want none", text, mark)
		}
	}
}

func TestParseMark(t *testing.T) {
	// virDomainGetMetadata takes the namespace off the element.
	mark, ok := ParseMark(`<vm epoch="2" operation="op-1" node="node-1"/>`)
	if want := (Mark{Epoch: 2, Operation: "op-1", Node: "node-1"}); !ok || mark != want {
		t.Errorf("got %+v, %v, want %+v", mark, ok, want)
	}
	if _, ok := ParseMark("<vm"); ok {
		t.Error("half an element is a mark")
	}
}

func TestCapabilities(t *testing.T) {
	caps, err := ParseCapabilities(read(t, "capabilities.xml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(caps.CPUFeatures) != 59 || caps.CPUFeatures[0] != "3dnowprefetch" {
		t.Errorf("CPU features: %d, first %q", len(caps.CPUFeatures), caps.CPUFeatures[0])
	}
	for _, machine := range []string{"pc", "q35", "pc-q35-7.2", "microvm"} {
		if !strings.Contains(strings.Join(caps.MachineTypes, " ")+" ", machine+" ") {
			t.Errorf("machine type %s is missing in %v", machine, caps.MachineTypes)
		}
	}
	caps.CPUFeatures, caps.MachineTypes = nil, []string{"pc", "q35"}
	want := Capabilities{
		HostUUID: "aaaaaaaa-0000-4000-8000-000000000001", Arch: "x86_64", CPUModel: "kvm64", CPUVendor: "AMD",
		Sockets: 1, CoresPerSocket: 2, ThreadsPerCore: 1, NUMACells: 1,
		DomainTypes: []string{"kvm", "qemu"}, MachineTypes: []string{"pc", "q35"},
	}
	if diff := cmp.Diff(want, caps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMachine(t *testing.T) {
	full := Capabilities{Arch: "x86_64", DomainTypes: []string{"kvm", "qemu"}, MachineTypes: []string{"microvm", "pc", "q35"}}
	soft := Capabilities{Arch: "x86_64", DomainTypes: []string{"qemu"}, MachineTypes: []string{"pc"}}
	for name, c := range map[string]struct {
		caps     Capabilities
		virtType string
		want     Machine
		wantErr  string
	}{
		"auto takes KVM":        {full, VirtAuto, Machine{VirtKVM, "x86_64", "q35"}, ""},
		"auto without KVM":      {soft, VirtAuto, Machine{VirtQEMU, "x86_64", "pc"}, ""},
		"qemu although KVM":     {full, VirtQEMU, Machine{VirtQEMU, "x86_64", "q35"}, ""},
		"kvm where there is no": {soft, VirtKVM, Machine{}, "check that /dev/kvm exists"},
		"unknown word":          {full, "xen", Machine{}, "write auto, kvm or qemu"},
		"no emulator":           {Capabilities{Arch: "riscv64"}, VirtAuto, Machine{}, "install the QEMU system emulator"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.caps.Machine(c.virtType)
			if got != c.want || (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got %+v, %v, want %+v, %q", got, err, c.want, c.wantErr)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(read(f, "migratable.xml"))
	f.Add("<domain type='kvm'><memory>1</memory><metadata/></domain>")
	f.Add("<domain type='kvm'><uuid>a</uuid><name>b</name><memory>1</memory><metadata>c</metadata></domain>")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Parse(text); err != nil {
			return
		}
		marked, err := WithIdentity(text, identity)
		if errors.Is(err, ErrInvalid) {
			return // two <metadata>, which Parse does not mind
		}
		if err != nil {
			t.Fatal(err)
		}
		if mark, ok := Metadata(marked); !ok || mark != identity.Mark {
			t.Fatalf("the mark is lost in %q", marked)
		}
	})
}

func TestWithoutMark(t *testing.T) {
	marked, err := WithIdentity("<domain><name>a</name><uuid>b</uuid><metadata><x:y xmlns:x='urn:x'/></metadata></domain>", identity)
	if err != nil {
		t.Fatal(err)
	}
	got, err := WithoutMark(marked)
	want := "<domain><name>web-1</name><uuid>" + uuid + "</uuid><metadata><x:y xmlns:x='urn:x'/></metadata></domain>"
	if err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if again, err := WithoutMark(got); err != nil || again != got {
		t.Errorf("without a mark: %s, %v", again, err)
	}
	if _, err := WithoutMark("<domain>"); !errors.Is(err, ErrInvalid) {
		t.Errorf("half a document: %v", err)
	}
	if mark, ok := ParseMark(identity.Mark.Text()); !ok || mark != identity.Mark {
		t.Errorf("the mark alone is %+v, %t", mark, ok)
	}
}
