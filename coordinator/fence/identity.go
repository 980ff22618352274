package fence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
)

// IdentityWithin is how long a device may take to say which machine it switches.
const IdentityWithin = 15 * time.Second

var (
	// errSilent says that nobody can tell which machine a device switches.
	errSilent = errors.New("does not tell which machine it switches")
	uuid      = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	guid      = regexp.MustCompile(`(?im)^System GUID\s*:\s*([0-9a-f-]{36})\s*$`)
)

// Identity is the system UUID of the machine that a device switches, as the device itself says. With an error, it is not known:
// management boards with IPMI and Redfish tell it, and of a virtual host its own UUID is the device's argument.
func (r *Runner) Identity(ctx context.Context, device model.FenceDevice) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, IdentityWithin)
	defer cancel()
	tell := map[string]func(context.Context, model.FenceDevice) (string, error){
		"fence_virsh": named, "fence_virt": named, "fence_xvm": named, "fence_vmware_soap": named,
		"fence_redfish": redfish,
		"fence_ipmilan": r.ipmi, "fence_ipmilanplus": r.ipmi, "fence_idrac": r.ipmi, "fence_imm": r.ipmi,
		"fence_ilo3": r.ipmi, "fence_ilo4": r.ipmi, "fence_ilo5": r.ipmi,
	}[device.Program]
	if tell == nil {
		return "", fmt.Errorf("%s %w", device.Program, errSilent)
	}
	if r.Socket != "" {
		answer, err := r.ask(ctx, request{Device: device, Action: actionIdentity}, IdentityWithin)
		return answer.Identity, err
	}
	id, err := tell(ctx, device)
	if err == nil && strings.Trim(id, "0fF-") == "" { // boards that were never given one
		err = fmt.Errorf("%s %w: it says %q", device.Program, errSilent, id)
	}
	return strings.ToLower(id), err
}

// argument is the first of some names that a device has an argument of.
func argument(device model.FenceDevice, names ...string) string {
	for _, name := range names {
		if value := device.Arguments[name]; value != "" {
			return value
		}
	}
	return ""
}

// isSet tells whether an argument is a yes.
func isSet(value string) bool {
	return slices.Contains([]string{"1", "yes", "on", "true"}, strings.ToLower(value))
}

// named is what a device says that switches a guest of another host: the guest's UUID, if that is what it is named by.
func named(_ context.Context, device model.FenceDevice) (string, error) {
	id := argument(device, "uuid", "plug", "port")
	if !uuid.MatchString(id) {
		return "", fmt.Errorf("%s is given a name and no UUID", device.Program)
	}
	return id, nil
}

// password is the secret of a device, as its fence agent would find it.
func password(ctx context.Context, device model.FenceDevice) (string, error) {
	script := argument(device, "password_script", "passwd_script")
	if script == "" {
		return argument(device, "password", "passwd"), nil
	}
	said, err := exec.CommandContext(ctx, "/bin/sh", "-c", script).Output()
	if err != nil {
		return "", fmt.Errorf("its password script: %w", err)
	}
	return strings.TrimRight(string(said), "\r\n"), nil
}

// ipmi asks a management board by the program that its fence agent uses.
func (r *Runner) ipmi(ctx context.Context, device model.FenceDevice) (string, error) {
	path, err := r.find("ipmitool")
	if err != nil {
		return "", errors.New("ipmitool is not on the leader's machine")
	}
	secret, err := password(ctx, device)
	if err != nil {
		return "", err
	}
	lan := "lanplus"
	if lanplus, given := device.Arguments["lanplus"]; device.Program == "fence_ipmilan" && !isSet(lanplus) || given && !isSet(lanplus) {
		lan = "lan"
	}
	arguments := []string{
		"-I", lan, "-H", argument(device, "ip", "ipaddr"), "-U", argument(device, "username", "login"), "-E",
		"-p", cmp.Or(argument(device, "ipport", "port"), "623"),
	}
	for flag, name := range map[string]string{"-C": "cipher", "-L": "privlvl", "-A": "auth"} {
		if value := device.Arguments[name]; value != "" {
			arguments = append(arguments, flag, value)
		}
	}
	cmd := exec.CommandContext(ctx, path, append(arguments, "mc", "guid")...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "IPMI_PASSWORD=" + secret}
	cmd.WaitDelay = killGrace
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ipmitool mc guid: %w", err)
	}
	found := guid.FindSubmatch(said)
	if found == nil {
		return "", fmt.Errorf("ipmitool mc guid said no GUID: %q", bytes.TrimSpace(said))
	}
	return string(found[1]), nil
}

// redfish asks a management board by HTTP.
func redfish(ctx context.Context, device model.FenceDevice) (string, error) {
	secret, err := password(ctx, device)
	if err != nil {
		return "", err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: isSet(device.Arguments["ssl_insecure"]), //nolint:gosec // who has declared the device says so
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	base := "https://" + net.JoinHostPort(argument(device, "ip", "ipaddr"), cmp.Or(argument(device, "ipport"), "443"))
	root := strings.TrimRight(cmp.Or(argument(device, "redfish_uri"), "/redfish/v1"), "/")
	get := func(path string, into any) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, http.NoBody)
		if err != nil {
			return err
		}
		request.SetBasicAuth(argument(device, "username", "login"), secret)
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		const most = 4 << 20
		return json.NewDecoder(io.LimitReader(response.Body, most)).Decode(into)
	}
	system := argument(device, "systems_uri")
	if system == "" { // as the fence agent does: the first one
		var all struct {
			Members []struct {
				ID string `json:"@odata.id"`
			}
		}
		if err := get(root+"/Systems", &all); err != nil {
			return "", fmt.Errorf("redfish: %w", err)
		}
		if len(all.Members) == 0 {
			return "", errors.New("redfish: the board has no system")
		}
		system = all.Members[0].ID
	}
	var is struct{ UUID string }
	if err := get(system, &is); err != nil {
		return "", fmt.Errorf("redfish: %w", err)
	}
	if !uuid.MatchString(is.UUID) {
		return "", fmt.Errorf("redfish: its system has no UUID, but %q", is.UUID)
	}
	return is.UUID, nil
}
