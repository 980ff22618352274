package libvirt

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"golang.org/x/sync/singleflight"
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/departures"
	"berth/agent/hypervisor/domainjobs"
	"berth/agent/hypervisor/guestlog"
	"berth/shared/domxml"
)

const (
	// A guest that writes faster than the link carries is slowed down in steps, or it would never arrive.
	throttleStart = 20 // per cent
	throttleStep  = 10

	// figuresPatience is how long the event with the figures may trail the end of the job. The guest stands still
	// meanwhile, so it is short, and figures that come later are found by Job.
	figuresPatience = 20 * time.Millisecond
)

// migrations are the jobs of guests that leave, or arrive, and what is left of them.
type migrations struct {
	*connection
	runDir     string
	logs       *guestlog.Logs
	departures departures.Departures
	quiet      domainjobs.Quiet
	others     domainjobs.Others
	done       domainjobs.Completed
	jobs       singleflight.Group // job queries by UUID: one at a time each, because they wait for the guest
}

// Migrate implements hypervisor.Hypervisor: managed and peer to peer, so that libvirtd talks to libvirtd and the job outlives the agent.
func (h *migrations) Migrate(ctx context.Context, uuid string, options hypervisor.MigrateOptions) error {
	dataURI, err := dataURI(options)
	if err != nil {
		return err
	}
	h.done.Drop(uuid)
	h.quiet.Set(uuid, false)
	one := departures.New()
	answered := make(chan error, 1)
	go func() {
		defer h.others.Migrating(uuid)()
		err := h.move(ctx, uuid, dataURI, options, one)
		if err != nil && one.HasLeft() {
			h.log.Warn("libvirtd failed to clean up after a guest that has left", "error", err)
		}
		answered <- err
	}()
	select {
	case err = <-answered:
	case <-one.Left:
		return nil
	}
	if err == nil {
		h.awaitFigures(uuid)
	}
	return err
}

// move is Migrate without an end before libvirtd answers, unless the departure tells it.
func (h *migrations) move(ctx context.Context, uuid, dataURI string, options hypervisor.MigrateOptions, one *departures.Departure) error {
	return h.on(ctx, &h.moves, "migrate", uuid, nil, func(d *libvirtgo.Domain) error {
		flags := libvirtgo.MIGRATE_LIVE | libvirtgo.MIGRATE_PEER2PEER | libvirtgo.MIGRATE_TLS |
			libvirtgo.MIGRATE_ABORT_ON_ERROR | libvirtgo.MIGRATE_AUTO_CONVERGE
		if options.Paused {
			flags |= libvirtgo.MIGRATE_PAUSED
		}
		parameters := libvirtgo.DomainMigrateParameters{
			URISet: true, URI: dataURI,
			DestXMLSet: true, DestXML: options.DomainXML,
			AutoConvergeInitialSet: true, AutoConvergeInitial: throttleStart,
			AutoConvergeIncrementSet: true, AutoConvergeIncrement: throttleStep,
		}
		if options.DataAddress != "" {
			parameters.ListenAddressSet, parameters.ListenAddress = true, options.DataAddress
		}
		if len(options.CopyDisks) > 0 {
			// The disks travel on a connection of their own, encrypted as the memory is.
			flags |= libvirtgo.MIGRATE_NON_SHARED_DISK
			parameters.MigrateDisksSet, parameters.MigrateDisks = true, options.CopyDisks
		}
		if options.SharedDisks {
			flags |= libvirtgo.MIGRATE_UNSAFE // libvirt goes by the type of file system, and does not know all that are shared
		}
		if options.BandwidthBPS > 0 {
			parameters.BandwidthSet, parameters.Bandwidth = true, uint64(options.BandwidthBPS+1<<20-1)>>20
		}
		persistent, err := d.IsPersistent()
		if err != nil {
			return err
		}
		if persistent {
			// The definition goes along. Without its own XML the next boot over there would take this node's devices.
			flags |= libvirtgo.MIGRATE_PERSIST_DEST | libvirtgo.MIGRATE_UNDEFINE_SOURCE
			if parameters.PersistXML, err = persistXML(d, options.DomainXML); err != nil {
				return err
			}
			parameters.PersistXMLSet = true
		}
		if options.Paused && len(options.CopyDisks) == 0 {
			// A copy that libvirt resumes itself waits for nobody. And what became of copied disks only the end of the job tells.
			defer h.depart(d, uuid, one)()
		}
		return d.MigrateToURI3(options.TargetURI, &parameters, flags)
	})
}

// persistXML is the domain's definition with the identity that its live XML will have on the target.
func persistXML(d *libvirtgo.Domain, liveXML string) (string, error) {
	definition, err := d.GetXMLDesc(libvirtgo.DOMAIN_XML_SECURE | libvirtgo.DOMAIN_XML_INACTIVE | libvirtgo.DOMAIN_XML_MIGRATABLE)
	if err != nil {
		return "", err
	}
	live, err := domxml.Parse(liveXML)
	if err != nil {
		return "", err
	}
	mark, marked := domxml.Metadata(liveXML)
	if !marked {
		return definition, nil
	}
	return domxml.WithIdentity(definition, domxml.Identity{UUID: live.UUID, Name: live.Name, Mark: mark})
}

// dataURI is where the guest's memory goes: an address that the source can reach for sure, instead of the host name that
// the target believes to have.
func dataURI(options hypervisor.MigrateOptions) (string, error) {
	host := options.DataAddress
	if host == "" {
		target, err := url.Parse(options.TargetURI)
		if err != nil {
			return "", fmt.Errorf("%w: target URI: %w", hypervisor.ErrUnsupported, err)
		}
		if host = target.Hostname(); host == "" {
			return "", fmt.Errorf(
				"%w: target URI %q names no host: write for instance qemu+tls://HOST/system", hypervisor.ErrUnsupported, options.TargetURI,
			)
		}
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		host = "[" + host + "]"
	}
	return "tcp://" + host, nil
}

func (h *migrations) awaitFigures(uuid string) {
	for deadline := time.Now().Add(figuresPatience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, found := h.done.Get(uuid); found {
			return
		}
	}
}

// Left implements hypervisor.Hypervisor.
func (h *migrations) Left(_ context.Context, uuid, name string) bool {
	return h.logs.Left(uuid, name)
}
