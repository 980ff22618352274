package fake_test

import (
	"testing"
	"testing/synctest"

	"berth/agent/hypervisor/fake"
	"berth/agent/hypervisor/hypervisortest"
)

func TestSuite(t *testing.T) {
	for _, c := range hypervisortest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wire := fake.NewWire()
				a, b := wire.Host("a"), wire.Host("b")
				wire.SharePool("shared", 1<<30, a, b)
				c.Run(t, hypervisortest.Bench{
					Source: hypervisortest.Host{
						Hypervisor: a, URI: a.URI(),
						Forget: func(_ *testing.T, _, uuid string) {
							a.Stop()
							a.Forget(uuid)
							a.Restart()
						},
						EndProcess: func(_ *testing.T, _, uuid string) { a.EndProcess(uuid) },
					},
					Target:     hypervisortest.Host{Hypervisor: b, URI: b.URI()},
					DomainType: "qemu", Pool: "default", Shared: "shared",
				})
			})
		})
	}
}
