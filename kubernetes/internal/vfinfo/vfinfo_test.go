package vfinfo

import (
	"strings"
	"testing"

	"softiov.io/kubernetes/internal/claims"
)

// device returns a VF of a request.
func device(vf, request string) claims.Device {
	return claims.Device{VF: vf, Socket: "/run/softiov/" + vf + "/vf.sock", Family: "virtio", MAC: "02:00:00:00:00:01", Requests: []string{request}}
}

func TestSocketOfAClaimDependsOnClaimAndRequestOnly(t *testing.T) {
	long := strings.Repeat("n", 63)
	for _, test := range []struct {
		name, claim, podClaim string
		devices               []claims.Device
		want                  string
	}{
		{"template", "web-nic-x7k2p", "nic", []claims.Device{device("pf0vf1", "r")}, "/run/softiov/template/nic/r/vf.sock"},
		{"alternative of a request", "web-nic-x7k2p", "nic", []claims.Device{device("pf0vf1", "r/fast")}, "/run/softiov/template/nic/r/vf.sock"},
		{"claim without a template", "nic", "", []claims.Device{device("pf0vf1", "r")}, "/run/softiov/claim/nic/r/vf.sock"},
		{"two VFs of a request", "nic", "", []claims.Device{device("pf0vf1", "r"), device("pf0vf2", "r")}, "/run/softiov/pf0vf1/vf.sock"},
		{"two requests", "nic", "", []claims.Device{device("pf0vf1", "r"), device("pf0vf2", "s")}, "/run/softiov/claim/nic/r/vf.sock"},
		{"names too long for a socket", "nic", long, []claims.Device{device("pf0vf1", long)}, "/run/softiov/pf0vf1/vf.sock"},
		{"device plugin", "", "", []claims.Device{device("pf0vf1", "r")}, "/run/softiov/pf0vf1/vf.sock"},
	} {
		record := &claims.Record{Name: test.claim, PodClaim: test.podClaim, Devices: test.devices}
		if got := Of(record, &test.devices[0]).Socket; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestEnvironmentReturnsWhatTheAgentDescribed(t *testing.T) {
	record := &claims.Record{Name: "web-nic-x7k2p", PodClaim: "nic", Devices: []claims.Device{device("pf0-vf1", "r")}}
	info := Of(record, &record.Devices[0])
	variables := append([]string{"PATH=/bin"}, info.Variables()...)
	if variables[1] != "SOFTIOV_VF_PF0_VF1=/run/softiov/pf0-vf1/vf.sock" || !strings.HasPrefix(variables[2], "SOFTIOV_INFO_PF0_VF1={") {
		t.Error(variables)
	}
	got, err := FromEnvironment(variables)
	if err != nil || len(got) != 1 || got[0] != info {
		t.Errorf("%v, %v, want %v", got, err, info)
	}
	for _, bad := range []string{"SOFTIOV_INFO_X=", "SOFTIOV_INFO_X={}", `SOFTIOV_INFO_X={"vf":1}`} {
		if _, err := FromEnvironment([]string{bad}); err == nil || !strings.Contains(err.Error(), "SOFTIOV_INFO_X") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// The container runtime mounts the folder, and removes what the container has there.
func TestNamesDoNotLeaveTheFolderOfClaims(t *testing.T) {
	device := claims.Device{VF: "pf0vf1", Socket: "/run/softiov/pf0vf1/vf.sock", Family: "82576", Requests: []string{"usr"}}
	for _, podClaim := range []string{"../../..", "..", ".", "a/../../.."} {
		record := claims.Record{Name: "nic", PodClaim: podClaim, Devices: []claims.Device{device}}
		if folder := ClaimFolder(&record, &device); folder != "" {
			t.Errorf("%q: %s", podClaim, folder)
		}
	}
}
