package hypervisor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/shared/domxml"
)

// As libvirt 9 writes it, shortened.
const statusFile = `<!--
WARNING: THIS IS AN AUTO-GENERATED FILE.
-->
<domstatus state='running' reason='booted' pid='4711'>
  <taint flag='custom-monitor'/>
  <monitor path='/var/lib/libvirt/qemu/domain-1-web/monitor.sock' type='unix'/>
  <domain type='kvm' id='1'>
    <name>web</name>
    <uuid>11111111-2222-4333-8444-555555555555</uuid>
    <metadata>
      <berth:vm xmlns:berth="NAMESPACE" epoch="7" operation="op" node="n1"/>
    </metadata>
    <memory unit='KiB'>65536</memory>
    <vcpu placement='static'>1</vcpu>
    <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type></os>
    <devices>
      <disk type='file' device='disk'>
        <driver name='qemu' type='qcow2'/>
        <source file='/srv/OVERLAY' index='4'>
          <privateData><nodenames><nodename type='storage' name='libvirt-4-storage'/></nodenames></privateData>
        </source>
        <backingStore type='file' index='1'><format type='raw'/><source file='/srv/web.raw'/><backingStore/></backingStore>
        <target dev='vda' bus='virtio'/>
        <alias name='virtio-disk0'/>
      </disk>
      <interface type='network'>
        <mac address='52:54:00:AA:BB:CC'/>
        <source network='default' portid='8e9c' bridge='virbr0'/>
        <actual type='bridge'><source bridge='virbr0'/></actual>
        <target dev='vnet0'/>
        <model type='virtio'/>
      </interface>
    </devices>
  </domain>
</domstatus>`

func TestWhatAGuestRunsWithIsReadFromLibvirtsFile(t *testing.T) {
	file := strings.ReplaceAll(statusFile, "NAMESPACE", domxml.Namespace)
	var news RanNews
	event, is := news.In("web", file, true, false)
	if !is || event.UUID != "11111111-2222-4333-8444-555555555555" || event.Kind != EventRan || event.Ran.Epoch != 7 || !event.Ran.Found {
		t.Fatalf("%t: %+v", is, event)
	}
	disk, network := event.Ran.Devices[0], event.Ran.Devices[1]
	if disk.Source.Path != "/srv/OVERLAY" || disk.Format != "qcow2" || strings.Contains(disk.XML, "web.raw") ||
		strings.Contains(disk.XML, "nodename") {
		t.Errorf("the disk is %+v", disk)
	}
	if network.Network != "default" || network.Key != "52:54:00:aa:bb:cc" || strings.Contains(network.XML, "vnet0") {
		t.Errorf("the interface is %+v", network)
	}
	if _, is := news.In("web", strings.Replace(file, "state='running'", "state='paused'", 1), false, false); is {
		t.Error("it tells again what it has told")
	}
	event, is = news.In("web", strings.Replace(file, "OVERLAY", "other", 1), false, false)
	if !is || event.Ran.Devices[0].Source.Path != "/srv/other" {
		t.Errorf("after a change it tells %t: %+v", is, event)
	}
	news.In("web", "", false, false)
	if _, is := news.In("web", strings.Replace(file, "OVERLAY", "other", 1), false, false); !is {
		t.Error("of a guest that is back it tells nothing")
	}
	for name, text := range map[string]string{
		"a guest of somebody else": strings.Replace(file, domxml.Namespace, "urn:other", 1), "half a file": file[:len(file)/2], "nothing": " ",
	} {
		if event, is := news.In(name, text, false, false); is {
			t.Errorf("%s: %+v", name, event)
		}
	}
}

// What was kept of a guest that has ended is told once, and not of one that is back or whose end was heard.
func TestWhatWasKeptOfAGuestIsToldOnce(t *testing.T) {
	before := strings.ReplaceAll(statusFile, "NAMESPACE", domxml.Namespace)
	after := strings.Replace(before, "OVERLAY", "other", 1)
	var news RanNews
	event, is := news.In("web", before, false, true)
	if !is || !event.Ran.Ended || event.Ran.Devices[0].Source.Path != "/srv/OVERLAY" {
		t.Fatalf("%t: %+v", is, event)
	}
	if _, is := news.In("web", before, false, true); is {
		t.Error("it is told twice")
	}
	if event, is := news.In("web", before, true, false); !is || event.Ran.Ended {
		t.Errorf("it is back: %t, %+v", is, event)
	}
	if _, is := news.In("web", after, false, true); is {
		t.Error("what was kept is told of a guest that is back")
	}
	news.In("web", after, false, false)
	news.In("web", "", false, false)
	if _, is := news.In("web", after, false, true); is {
		t.Error("its end was heard")
	}
	if _, is := news.In("web", before, false, true); !is {
		t.Error("another end was not")
	}
	news.In("web", after, false, false)
	news.Missed()
	if _, is := news.In("web", before, false, true); is {
		t.Error("what was told before is told again")
	}
	if _, is := news.In("web", after, true, false); !is {
		t.Error("what is there after a gap is not told")
	}
}

// A host that runs guest after guest for years does not remember them all: the first ones that ended are forgotten.
func TestOnlySoManyEndsAreRemembered(t *testing.T) {
	file := strings.ReplaceAll(statusFile, "NAMESPACE", domxml.Namespace)
	var news RanNews
	name := func(i int) string { return fmt.Sprintf("guest-%d", i) }
	for i := range mostEnded + 10 {
		if _, is := news.In(name(i), file, false, true); !is {
			t.Fatalf("%s is not told", name(i))
		}
		news.In("often", file, false, false)
		news.In("often", "", false, false)
	}
	if len(news.last) != mostEnded || len(news.told) != 0 {
		t.Errorf("%d ends are remembered, and %d guests run", len(news.last), len(news.told))
	}
	for guest, want := range map[string]bool{name(0): false, name(10): false, name(11): true, name(mostEnded + 9): true, "often": true} {
		if _, is := news.last[guest]; is != want {
			t.Errorf("%s is remembered: %t", guest, is)
		}
	}
}

// The files of guests are read as soon as the agent begins, before anybody subscribes.
func TestWhatGuestsWereFoundWithWaitsForTheFirstSubscriber(t *testing.T) {
	var feed Feed
	feed.Publish(Event{Kind: EventRan, UUID: "early"})
	feed.Publish(Event{Kind: EventStarted, UUID: "not told"})
	for _, want := range []string{"early", "late"} {
		ctx, end := context.WithCancel(t.Context())
		heard := make(chan Event, 10)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = feed.Subscribe(ctx, func(e Event) { heard <- e })
		}()
		for want == "late" && len(heard) == 0 {
			feed.Publish(Event{Kind: EventRan, UUID: "late"}) // until it has subscribed
			time.Sleep(time.Millisecond)
		}
		if first := <-heard; first.UUID != want {
			t.Errorf("first it hears of %s, want %s", first.UUID, want)
		}
		end()
		<-ended
	}
}

// A migration that fails leaves libvirt's file of a copy on the target that has never run. The guest was elsewhere all the time: were the
// target to tell what it ran with there, its next start would look for its disks on that node.
func TestACopyThatHasNotRunIsNobodysLastRun(t *testing.T) {
	file := strings.ReplaceAll(statusFile, "NAMESPACE", domxml.Namespace)
	as := func(reason string) string {
		return strings.ReplaceAll(file, "state='running' reason='booted'", "state='paused' reason='"+reason+"'")
	}
	for _, reason := range []string{"starting up", "migration"} {
		var news RanNews
		for what, kept := range map[string]bool{"while it is there": false, "when it is gone": true} {
			if event, is := news.In("web", as(reason), false, kept); is {
				t.Errorf("paused for %s, %s: %+v", reason, what, event.Ran)
			}
		}
		if _, is := news.In("web", file, false, false); !is {
			t.Errorf("paused for %s, and then it runs: it is not told", reason)
		}
		if _, is := news.In("web", as(reason), false, false); is {
			t.Errorf("it runs, and is paused for %s: it is told as news", reason)
		}
		if _, is := news.In("web", file, false, false); is {
			t.Errorf("it runs on after it was paused for %s: it is told again", reason)
		}
	}
	var news RanNews
	if _, is := news.In("web", as("user"), false, false); !is {
		t.Error("a guest that somebody has paused is not told")
	}
}
