package jobs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

// recorder keeps how it was asked to migrate.
type recorder struct {
	*fake.Hypervisor
	options hypervisor.MigrateOptions
}

func (r *recorder) Migrate(ctx context.Context, uuid string, options hypervisor.MigrateOptions) error {
	r.options = options
	return r.Hypervisor.Migrate(ctx, uuid, options)
}

func TestMigrateCopiesLocalDisks(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		record := &recorder{Hypervisor: b.node}
		b.jobs.Hypervisor = record
		start := command("op1", 1, 5, startWith("local", made("local")...))
		start.GetStart().Volumes[1].Pool, start.GetStart().Spec.Disks[1].Pool = "shared", "shared"
		b.want(b.do(start), done_, "", running)
		b.node.WriteDisk("local", rootName, []byte("written"))
		for _, name := range []string{rootName, seedName} {
			wanted := hypervisor.NewVolume{Pool: "local", Name: name, Format: "qcow2", CapacityBytes: 1 << 30}
			if err := b.peer.CreateVolume(b.Context(), wanted); err != nil {
				b.Fatal(err)
			}
		}
		along := []*berthv1.Volume{volumeOf("local", rootName), {Pool: "local", Name: seedName, Format: "raw", Seed: true}}
		order := command("op2", 1, 5, migrateOrder)
		order.GetMigrate().CopyStorage, order.GetMigrate().From, order.GetMigrate().To = true, along, along
		r := b.do(order)
		b.want(r, done_, "", absentState)
		if m := r.GetMigration(); m.GetDiskTotalBytes() != 1<<30 || m.GetDiskProcessedBytes() != 1<<30 {
			b.Errorf("figures of the disks: %+v", m)
		}
		if got := b.peer.Content("local", rootName); string(got) != "written" {
			b.Errorf("on the target: %q", got)
		}
		if !slices.Equal(record.options.CopyDisks, []string{"vda"}) || !record.options.SharedDisks {
			b.Errorf("asked with %v, shared %v", record.options.CopyDisks, record.options.SharedDisks)
		}
		for _, want := range []string{
			`<source pool="local" volume="` + rootName + `"/>`, `<source file="/pools/shared/` + dataName + `"/>`,
			`<source pool="local" volume="` + seedName + `"/>`,
		} {
			if !strings.Contains(record.options.DomainXML, want) {
				b.Errorf("no %s in\n%s", want, record.options.DomainXML)
			}
		}
		// The source's go when the coordinator says so, under the epoch that ran here.
		b.holds(b.node, "local", rootName, seedName)
		b.want(b.do(command("op2", 5, 5, clearOrder(along...))), done_, "", absentState)
		b.holds(b.node, "local")
		b.holds(b.peer, "local", rootName, seedName)
	})
}

func TestMigrateThatCannotCopyWhatItShould(t *testing.T) {
	raw := volumeOf("local", rootName)
	raw.Format = "raw"
	for name, c := range map[string]struct {
		from, to *berthv1.Volume
		code     string
	}{
		"another format":       {volumeOf("local", rootName), raw, "unsupported"},
		"no such disk":         {volumeOf("local", "berth-0xyz.qcow2"), volumeOf("local", "berth-0xyz.qcow2"), "unsupported"},
		"nothing waits for it": {volumeOf("local", rootName), volumeOf("local", rootName), "no_volume"},
		"the file is not there yet": {
			volumeOf("local", rootName), &berthv1.Volume{Pool: "shared", Name: rootName, Format: "qcow2", Shared: true}, "no_volume",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				b.want(b.do(command("op1", 1, 5, startWith("local", made("local")...))), done_, "", running)
				order := command("op2", 1, 5, migrateOrder)
				order.GetMigrate().From, order.GetMigrate().To = []*berthv1.Volume{c.from}, []*berthv1.Volume{c.to}
				b.want(b.do(order), failed, c.code, running)
			})
		})
	}
}

// A domain with a disk that is neither copied nor a volume of ours is libvirt's to judge.
func TestMigrateVouchesOnlyForVolumes(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		record := &recorder{Hypervisor: b.node}
		b.jobs.Hypervisor = record
		start := command("op1", 1, 5, startWith("shared", made("shared")...))
		b.want(b.do(start), done_, "", running)
		b.want(b.do(command("op2", 1, 5, migrateOrder)), done_, "", absentState)
		if !record.options.SharedDisks || len(record.options.CopyDisks) != 0 || strings.Contains(record.options.DomainXML, "pool=") {
			b.Errorf("asked with %+v", record.options)
		}
	})
	inBubble(t, func(b *bench) {
		b.addPools()
		record := &recorder{Hypervisor: b.node}
		b.jobs.Hypervisor = record
		start := command("op1", 1, 5, startWith("shared", made("shared")...))
		start.GetStart().Spec.Disks = append(start.GetStart().Spec.Disks, &berthv1.Disk{Path: "/srv/own.raw", Format: "raw"})
		b.want(b.do(start), done_, "", running)
		b.want(b.do(command("op2", 1, 5, migrateOrder)), done_, "", absentState)
		if record.options.SharedDisks {
			b.Error("vouched for a file of which nobody knows who sees it")
		}
	})
}

// A file in the folder of a pool that is declared as shared is on both nodes, whatever the type of its file system is. One in the folder
// of another pool is not, nor one beside the folder.
func TestMigrateVouchesForFilesInSharedPools(t *testing.T) {
	for file, vouched := range map[string]bool{
		"/pools/shared/own.raw": true, "/pools/n1/local/own.raw": false, "/pools/shared-not/own.raw": false,
	} {
		inBubble(t, func(b *bench) {
			b.addPools()
			record := &recorder{Hypervisor: b.node}
			b.jobs.Hypervisor = record
			start := command("op1", 1, 5, startWith("shared", made("shared")...))
			start.GetStart().Spec.Disks = append(start.GetStart().Spec.Disks, &berthv1.Disk{Path: file, Format: "raw"})
			b.want(b.do(start), done_, "", running)
			order := command("op2", 1, 5, migrateOrder)
			order.GetMigrate().SharedPools = []string{"shared"}
			b.want(b.do(order), done_, "", absentState)
			if record.options.SharedDisks != vouched {
				b.Errorf("%s: vouched %t", file, record.options.SharedDisks)
			}
		})
	}
}
