package adversary

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// An operator whom nobody has given a permission has seen what one with all sends, byte for byte, and sends it, too.
func TestAnOperatorWithoutAPermissionGetsItByNoWay(t *testing.T) {
	c := coordinate(t)
	_, err := c.api(c.admin).ChangeResource(t.Context(), connect.NewRequest(&berthv1.ChangeResourceRequest{
		Kind: "cluster", Name: "default", Settings: map[string]string{"permit": "all"},
	}))
	c.check(err)
	id, mallory := c.enrol("operator", "mallory")
	second, friend := c.enrol("operator", "friend")
	network := &berthv1.AddResourceRequest{
		Kind: "network", Name: "front", Settings: map[string]string{"source": "bridge:br9"}, RequestId: "n1",
	}
	give := &berthv1.SetIdentityRequest{Identity: "operator/mallory", Permit: "host-network", RequestId: "g1"}
	add := berthv1connect.BerthServiceAddResourceProcedure
	set := berthv1connect.BerthServiceSetIdentityProcedure
	told := func(files pki.Files, procedure string, message proto.Message, forwarded string) bool {
		t.Helper()
		body, err := proto.Marshal(message)
		c.check(err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+c.config.Listen.API+procedure, bytes.NewReader(body))
		c.check(err)
		request.Header.Set("Content-Type", "application/proto")
		if forwarded != "" {
			request.Header.Set("Berth-Forwarded-For", forwarded)
		}
		answer, err := c.client(files).Do(request)
		c.check(err)
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode == http.StatusOK
	}
	has := func() string {
		shown, err := c.api(c.admin).GetIdentity(t.Context(), connect.NewRequest(&berthv1.GetIdentityRequest{Identity: id}))
		c.check(err)
		return shown.Msg.GetIdentity().GetPermit()
	}
	remove := func() {
		_, err := c.api(c.admin).DeleteResource(t.Context(), connect.NewRequest(&berthv1.DeleteResourceRequest{Kind: "network", Name: "front"}))
		c.check(err)
	}
	there := func() bool {
		_, err := c.api(c.admin).GetResource(t.Context(), connect.NewRequest(&berthv1.GetResourceRequest{Kind: "network", Name: "front"}))
		if err != nil && rpc.Detail(err).GetCode() != rpc.NotFound {
			t.Fatal(err)
		}
		return err == nil
	}
	if told(mallory, add, network, "") || there() {
		t.Error("it declares a bridge of the hosts")
	}
	if !told(c.admin, add, network, "") || !there() {
		t.Fatal("who has the permission declares nothing")
	}
	remove()
	certificate, err := os.ReadFile(c.admin.Certificate)
	c.check(err)
	who, err := pki.BearerOfPEM(certificate)
	c.check(err)
	asAdmin := url.Values{
		"role": {string(who.Role)}, "id": {who.ID}, "name": {who.Name}, "cluster": {who.ClusterID}, "address": {"127.0.0.1"}, "key": {who.Key},
	}.Encode()
	for name, forwarded := range map[string]string{"the same once more": "", "in the name of another": asAdmin} {
		told(mallory, add, network, forwarded) // an answer of before may be given again
		again := proto.Clone(network).(*berthv1.AddResourceRequest)
		again.RequestId = "again"
		if told(mallory, add, again, forwarded) || there() {
			t.Errorf("%s: it declares a bridge of the hosts", name)
		}
		again.RequestId = ""
		if told(mallory, add, again, forwarded) || there() {
			t.Errorf("%s, without an ID: it declares a bridge of the hosts", name)
		}
	}
	for name, one := range map[string]struct {
		by pki.Files
		of string
	}{"itself": {mallory, id}, "by a friend": {friend, id}, "to a friend": {mallory, second}} {
		wanted := proto.Clone(give).(*berthv1.SetIdentityRequest)
		wanted.Identity, wanted.RequestId = one.of, "x"+name
		if told(one.by, set, wanted, "") || told(one.by, set, wanted, asAdmin) {
			t.Errorf("%s: it gives what it does not have", name)
		}
	}
	// What it was given once, and sends again after it was taken, gives it nothing.
	given := proto.Clone(network).(*berthv1.AddResourceRequest)
	given.RequestId = "given"
	if !told(c.admin, set, give, "") || has() != "host-network" || !told(mallory, add, given, "") || !there() {
		t.Fatalf("it was given the permission, and has %s", has())
	}
	remove()
	if !told(c.admin, set, &berthv1.SetIdentityRequest{Identity: "operator/mallory", Permit: "none", RequestId: "g2"}, "") {
		t.Fatal("it is not taken")
	}
	told(mallory, set, give, "")
	told(friend, set, give, asAdmin)
	if got := has(); got != "none" {
		t.Errorf("it has %s again", got)
	}
	network.RequestId = "late"
	if told(mallory, add, network, "") || there() {
		t.Error("what was taken is good at the next call")
	}
}
