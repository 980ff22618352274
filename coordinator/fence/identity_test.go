package fence

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"berth/coordinator/model"
)

const someUUID = "4c4c4544-0042-3510-8052-b4c04f4d3732"

func asked(program string, arguments map[string]string) model.FenceDevice {
	return model.FenceDevice{Method: model.FenceCommand, Program: program, Arguments: arguments}
}

func TestWhichMachineAManagementBoardSwitches(t *testing.T) {
	dir := t.TempDir()
	tool := func(body string) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if err := os.WriteFile(filepath.Join(dir, "ipmitool"), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	here := &Runner{Directories: []string{dir}}
	board := asked("fence_ipmilan", map[string]string{
		"ip": "10.0.0.9", "username": "admin", "password": "swordfish", "lanplus": "1", "privlvl": "operator",
	})
	tool(`[ "$*" = "-I lanplus -H 10.0.0.9 -U admin -E -p 623 -L operator mc guid" ] || { echo "$*" >&2; exit 3; }
[ "$IPMI_PASSWORD" = swordfish ] || exit 4
echo "System GUID  : 4C4C4544-0042-3510-8052-B4C04F4D3732"
echo "Timestamp    : 01/01/1970 00:00:00"`)
	for name, way := range ways {
		if id, err := way(t, here).Identity(t.Context(), board); err != nil || id != someUUID {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
	r := served(t, here)
	tool(`echo "System GUID  : 00000000-0000-0000-0000-000000000000"`)
	if id, err := r.Identity(t.Context(), board); err == nil {
		t.Errorf("a board that was never given an identity says %q", id)
	}
	tool(`exit 1`)
	if _, err := r.Identity(t.Context(), board); err == nil || strings.Contains(err.Error(), "swordfish") {
		t.Errorf("a board that does not answer: %v", err)
	}
}

func TestWhichMachineRedfishSwitches(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, secret, _ := request.BasicAuth()
		switch {
		case user != "admin" || secret != "swordfish":
			w.WriteHeader(http.StatusUnauthorized)
		case request.URL.Path == "/redfish/v1/Systems":
			_, _ = w.Write([]byte(`{"Members":[{"@odata.id":"/redfish/v1/Systems/1"}]}`))
		case request.URL.Path == "/redfish/v1/Systems/1":
			_, _ = w.Write([]byte(`{"UUID":"4C4C4544-0042-3510-8052-B4C04F4D3732","PowerState":"On"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	at, _ := url.Parse(server.URL)
	r := &Runner{}
	arguments := map[string]string{
		"ip": at.Hostname(), "ipport": at.Port(), "username": "admin", "password_script": "echo swordfish", "ssl_insecure": "1",
	}
	if id, err := r.Identity(t.Context(), asked("fence_redfish", arguments)); err != nil || id != someUUID {
		t.Errorf("%q, %v", id, err)
	}
	arguments["systems_uri"] = "/redfish/v1/Systems/7"
	if _, err := r.Identity(t.Context(), asked("fence_redfish", arguments)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("no such system: %v", err)
	}
	delete(arguments, "ssl_insecure")
	if _, err := r.Identity(t.Context(), asked("fence_redfish", arguments)); err == nil {
		t.Error("a certificate of nobody is taken")
	}
}

func TestDevicesThatDoNotTellWhichMachine(t *testing.T) {
	r := &Runner{Directories: []string{t.TempDir()}}
	for _, c := range []struct {
		device model.FenceDevice
		want   string // identity; empty: why not
		says   string
	}{
		{asked("fence_virsh", map[string]string{"ip": "10.0.0.1", "plug": someUUID}), someUUID, ""},
		{asked("fence_virsh", map[string]string{"ip": "10.0.0.1", "plug": "node1"}), "", "a name and no UUID"},
		{asked("fence_apc", map[string]string{"ip": "10.0.0.1", "plug": "3"}), "", "does not tell which machine"},
		{asked("fence_ipmilan", map[string]string{"ip": "10.0.0.1"}), "", "ipmitool is not on"},
	} {
		id, err := r.Identity(t.Context(), c.device)
		if id != c.want || (err == nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %q, %v", c.device, id, err)
		}
	}
}
