package dra

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
)

func snapshotOf(names ...string) *inventory.Snapshot {
	snapshot := &inventory.Snapshot{Answered: true}
	for _, name := range names {
		snapshot.VFs = append(snapshot.VFs, inventory.VF{VF: host.VF{Name: name, Settings: host.Settings{"vlans": []byte(`"any"`)}}})
	}
	return snapshot
}

func testDriver() *Driver {
	return New(Config{Node: "node-1", Owns: func(string) bool { return true }})
}

// Reported for nri-plugins (#803) and dra-driver-cpu (#5): the API refuses a slice with more than 128 devices.
func TestManyVFsBecomeSeveralSlices(t *testing.T) {
	for count, want := range map[int][]int{0: {0}, 1: {1}, 128: {128}, 129: {128, 1}, 192: {128, 64}} {
		var names []string
		for i := range count {
			names = append(names, fmt.Sprintf("pf0vf%d", i))
		}
		slices := testDriver().Resources(klog.Background(), snapshotOf(names...)).Pools["node-1"].Slices
		var sizes []int
		for _, slice := range slices {
			sizes = append(sizes, len(slice.Devices))
		}
		if fmt.Sprint(sizes) != fmt.Sprint(want) {
			t.Errorf("%d VFs: slices of %v, want %v", count, sizes, want)
		}
	}
}

// One invalid device would have the API refuse the whole slice.
func TestVFWithANameThatKubernetesRefusesIsLeftOut(t *testing.T) {
	slices := testDriver().Resources(klog.Background(), snapshotOf("PF0vf0", "pf_0vf0", "pf0vf0")).Pools["node-1"].Slices
	if len(slices[0].Devices) != 1 || slices[0].Devices[0].Name != "pf0vf0" {
		t.Errorf("devices %v", slices[0].Devices)
	}
}

func TestAttributeThatIsTooLongIsLeftOut(t *testing.T) {
	vf := &snapshotOf("pf0vf0").VFs[0]
	vf.Uplink = "stream:/" + strings.Repeat("x", 64)
	vf.Family = "avf"
	all := attributes(vf)
	if _, present := all["uplink"]; present {
		t.Error("the API refuses the uplink")
	}
	if got := all["rate"].IntValue; got == nil || *got != 25_000 {
		t.Errorf("rate %v", got)
	}
	if _, present := all["routingID"]; present {
		t.Error("an empty attribute is published")
	}
}

// Kubelet repeats prepare after a restart, also while the host is away.
func TestVFOfARecordHasAttributesWithoutTheHost(t *testing.T) {
	device := &claims.Device{
		VF: "pf0vf0", Family: "virtio", Socket: "/run/softiov/pf0vf0/vf.sock", MAC: "02:00:00:00:00:01",
		Requests: []string{"nic"}, Wanted: host.Settings{"vlan": []byte("100")},
	}
	record := &claims.Record{Name: strings.Repeat("long-", 10), Devices: []claims.Device{*device}}
	got := metadata(record, device, &inventory.Snapshot{})
	for name, want := range map[string]string{"family": "virtio", "protocol": "vhost-user", "socket": "/run/softiov/pf0vf0/vf.sock"} {
		if value := got.Attributes[name].StringValue; value == nil || *value != want {
			t.Errorf("%s is %v, want %s", name, value, want)
		}
	}
	if vlan := got.Attributes["vlan"].IntValue; vlan == nil || *vlan != 100 || got.NetworkData.HardwareAddress != device.MAC {
		t.Errorf("%+v, vlan %v", got.NetworkData, vlan)
	}
}

func TestConfigurationAppliesToItsRequests(t *testing.T) {
	for _, test := range []struct {
		requests []string
		request  string
		want     bool
	}{
		{nil, "nic", true}, {[]string{"nic"}, "nic", true}, {[]string{"other"}, "nic", false},
		// Alternatives of a request (firstAvailable).
		{[]string{"nic"}, "nic/fast", true}, {[]string{"nic/fast"}, "nic/fast", true}, {[]string{"nic/slow"}, "nic/fast", false},
		{[]string{"ni"}, "nic/fast", false},
	} {
		if got := applies(test.requests, test.request); got != test.want {
			t.Errorf("%v for %s: %v", test.requests, test.request, got)
		}
	}
}
