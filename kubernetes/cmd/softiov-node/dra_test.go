package main

import (
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"softiov.io/kubernetes/internal/binding"
	"softiov.io/kubernetes/internal/dra"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/vfinfo"
)

// inject does what a container runtime does with the CDI devices of a container.
func inject(t *testing.T, folder string, ids []string) (*oci.Spec, error) {
	t.Helper()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Join(folder, "cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		t.Fatal(err)
	}
	container := &oci.Spec{}
	_, err = cache.InjectDevices(container, ids...)
	return container, err
}

func TestDriverRegistersAndPublishesVFs(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	agent := startAgent(t, folder, newKube())
	_, info := registerDRA(t, folder)
	if info.Type != registration.DRAPlugin || info.Name != dra.DriverName {
		t.Errorf("registered %s %s", info.Type, info.Name)
	}
	for _, service := range []string{"v1.DRAPlugin", "v1.DRAResourceHealth"} {
		if !slices.Contains(info.SupportedVersions, service) {
			t.Errorf("the services %v lack %s", info.SupportedVersions, service)
		}
	}
	want := []string{"pf0vf0", "pf0vf1", "pf0vf2", "pf0vf3", "pf1vf0", "pf1vf1"}
	eventually(t, "slices with the VFs of pf0 and pf1, and not of the device plugin's pf2", func() bool {
		return slices.Equal(slices.Sorted(maps.Keys(agent.offered())), want)
	})
	attributes := agent.offered()["pf0vf1"].Attributes
	for name, value := range map[resourceapi.QualifiedName]string{
		"family": "82576", "port": "pf0", "uplink": "none", "vlans": "10,20,100-199", "routingID": "00:11.2",
	} {
		if got := attributes[name].StringValue; got == nil || *got != value {
			t.Errorf("%s is %v, want %s", name, got, value)
		}
	}
	for name, value := range map[resourceapi.QualifiedName]int64{"index": 1, "vlanMin": 10, "vlanMax": 199, "rate": 1000} {
		if got := attributes[name].IntValue; got == nil || *got != value {
			t.Errorf("%s is %v, want %d", name, got, value)
		}
	}
}

// Kubelet deletes the slices of its node when it starts (DRAPluginManager.wipeResourceSlices in kubernetes). Upstream's helper
// alone waits for 30 seconds.
func TestDeletedSlicesArePublishedAgainAtOnce(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	agent := startAgent(t, folder, newKube())
	for range 2 {
		eventually(t, "slices with the VFs of pf0 and pf1", func() bool { return len(agent.offered()) == 6 })
		before := time.Now()
		for _, slice := range agent.slices() {
			if err := agent.kube.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the slices are back", func() bool { return len(agent.offered()) == 6 })
		if took := time.Since(before); took >= resourceslice.DefaultSyncDelay {
			t.Errorf("the slices were away for %v", took)
		}
	}
}

func TestPreparedClaimHasFolderAndPolicy(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	host := startHost(t, folder)
	first := claim("first", `"vlan":100,"qos":3,"mac":"02:00:00:00:aa:01","spoofchk":"on","max_tx_rate":500`, "pf0vf1")
	second := claim("second", "", "pf0vf0", "pf1vf1")
	startAgent(t, folder, newKube(first, second))
	kubelet, _ := registerDRA(t, folder)

	answer := kubelet.prepare(first)
	if answer.Error != "" || len(answer.Devices) != 1 {
		t.Fatalf("prepare: %v", answer)
	}
	for name, want := range map[string]string{"vlan": "100", "qos": "3", "mac": `"02:00:00:00:aa:01"`, "max_tx_rate": "500"} {
		if got := host.setting("pf0vf1", name); got != want {
			t.Errorf("%s of pf0vf1 is %s, want %s", name, got, want)
		}
	}
	ids := answer.Devices[0].CdiDeviceIds
	for _, device := range kubelet.prepare(second).Devices {
		ids = append(ids, device.CdiDeviceIds...)
	}
	container, err := inject(t, folder, ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, vf := range []string{"pf0vf1", "pf0vf0", "pf1vf1"} {
		inClaim := map[string]string{"pf0vf1": "/run/softiov/claim/first/request-0", "pf0vf0": "/run/softiov/claim/second/request-0",
			"pf1vf1": "/run/softiov/claim/second/request-1"}[vf]
		for _, destination := range []string{"/run/softiov/" + vf, inClaim} {
			at := slices.IndexFunc(container.Mounts, func(mount oci.Mount) bool { return mount.Destination == destination })
			if at < 0 || container.Mounts[at].Source != filepath.Join(folder, "rt", vf) || !slices.Contains(container.Mounts[at].Options, "ro") {
				t.Errorf("%s: mounts %+v", destination, container.Mounts)
			}
		}
		if variable := "SOFTIOV_VF_" + strings.ToUpper(vf) + "=/run/softiov/" + vf + "/vf.sock"; !slices.Contains(container.Process.Env, variable) {
			t.Errorf("the variables %v lack %s", container.Process.Env, variable)
		}
	}

	described, err := vfinfo.FromEnvironment(container.Process.Env)
	want := vfinfo.Info{VF: "pf0vf1", Family: "82576", Protocol: vfinfo.VfioUser, Socket: "/run/softiov/claim/first/request-0/vf.sock",
		MAC: "02:00:00:00:aa:01", Claim: "first", Request: "request-0"}
	if err != nil || len(described) != 3 || described[1] != want {
		t.Errorf("described %+v, %v; want %+v", described, err, want)
	}
	for _, info := range described {
		if address, err := net.ParseMAC(info.MAC); err != nil || address[0]&1 != 0 || slices.Equal(address, make([]byte, 6)) {
			t.Errorf("%s has the address %q", info.VF, info.MAC)
		}
	}

	if fault := kubelet.unprepare(first); fault != "" {
		t.Fatal(fault)
	}
	for name, want := range map[string]string{"vlan": "0", "qos": "0", "mac": `"00:00:00:00:00:00"`, "max_tx_rate": "0"} {
		if got := host.setting("pf0vf1", name); got != want {
			t.Errorf("%s of pf0vf1 stays %s after the claim, want %s", name, got, want)
		}
	}
	if _, err := inject(t, folder, answer.Devices[0].CdiDeviceIds); err == nil {
		t.Error("the CDI device of an ended claim still resolves")
	}
	if fault := kubelet.unprepare(first); fault != "" {
		t.Errorf("the second unprepare fails: %s", fault)
	}
}

func TestRefusedClaimNamesCauseAndChangesNothing(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	host := startHost(t, folder)
	byClass := claim("by-class", `"vlan":20`, "pf0vf1")
	configure(byClass, resourceapi.AllocationConfigSourceClass, `"vlan":10`)
	admin := claim("admin", "", "pf0vf1")
	yes := true
	admin.Status.Allocation.Devices.Results[0].AdminAccess = &yes
	elsewhere := claim("elsewhere", "", "pf0vf1")
	elsewhere.Status.Allocation.Devices.Results[0].Pool = "node-2"
	climber := claim("climber", "", "pf0vf1")
	climber.Annotations = map[string]string{resourceapi.PodResourceClaimAnnotation: "../../.."}
	for _, test := range []struct {
		claim *resourceapi.ResourceClaim
		want  string
	}{
		{claim("vlan-not-allowed", `"vlan":300`, "pf0vf1"), "VLAN 300 is not among the VF's allowed VLANs"},
		{claim("vlan-out-of-range", `"vlan":5000`, "pf0vf1"), "request request-0: vlan: 5000 is out of range (0-4094"},
		{claim("too-fast", `"max_tx_rate":5000`, "pf0vf1"), "transmit rate 5000 Mb/s exceeds the link's 1000 Mb/s"},
		{claim("administrators", `"vlan":40`, "pf0vf2"), "vlan of pf0vf2 is 30, set by the host's administrator (file)"},
		{claim("trust", `"trust":"on"`, "pf0vf1"), "trust: a claim may not set true"},
		{claim("unknown", `"speed":1`, "pf0vf1"), "unknown parameter speed"},
		{claim("same-mac", `"mac":"02:00:00:00:aa:02"`, "pf0vf0", "pf0vf1"), "is also that of pf0vf0"},
		{claim("no-vf", "", "pf0vf7"), "the host offers no VF pf0vf7"},
		{claim("plugins-vf", "", "pf2vf0"), "the host offers no VF pf2vf0 for claims"},
		{byClass, "the claim sets 20, but its device class sets 10"},
		{admin, "adminAccess is not supported"},
		{elsewhere, "is of node node-2"},
		{climber, "must be a DNS label; remove the annotation"},
	} {
		agentClaim := test.claim
		t.Run(agentClaim.Name, func(t *testing.T) {
			inner := shortFolder(t)
			if err := os.Symlink(filepath.Join(folder, "rt"), filepath.Join(inner, "rt")); err != nil {
				t.Fatal(err)
			}
			startAgent(t, inner, newKube(agentClaim))
			kubelet, _ := registerDRA(t, inner)
			answer := kubelet.prepare(agentClaim)
			if !strings.Contains(answer.Error, test.want) || !strings.Contains(answer.Error, "claim default/"+agentClaim.Name) {
				t.Errorf("error %q, want %q", answer.Error, test.want)
			}
			if fault := kubelet.unprepare(agentClaim); fault != "" {
				t.Errorf("unprepare of a refused claim: %s", fault)
			}
		})
	}
	if vlan, state := host.setting("pf0vf1", "vlan"), host.setting("pf0vf1", "trust"); vlan != "0" || state != "false" {
		t.Errorf("a refused claim left vlan %s, trust %s", vlan, state)
	}
}

func TestDeviceClassMaySetPrivilegedParameters(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	host := startHost(t, folder)
	trusted := claim("trusted", "", "pf0vf3")
	configure(trusted, resourceapi.AllocationConfigSourceClass, `"trust":"on","spoofchk":"off"`)
	startAgent(t, folder, newKube(trusted))
	kubelet, _ := registerDRA(t, folder)
	if answer := kubelet.prepare(trusted); answer.Error != "" {
		t.Fatal(answer.Error)
	}
	if trust, spoofchk := host.setting("pf0vf3", "trust"), host.setting("pf0vf3", "spoofchk"); trust != "true" || spoofchk != "false" {
		t.Errorf("trust %s, spoofchk %s", trust, spoofchk)
	}
}

// Reported for dra-driver-cpu (#80): devices of other drivers in a claim were treated as the driver's own.
func TestDevicesOfOtherDriversAreLeftAlone(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	mixed := claim("mixed", "", "pf0vf0", "pf0vf1")
	mixed.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com"
	raw := &mixed.Status.Allocation.Devices.Config
	*raw = append(*raw, resourceapi.DeviceAllocationConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "gpu.example.com", Parameters: runtime.RawExtension{Raw: []byte(`{"vlan":"no"}`)}},
	}})
	startAgent(t, folder, newKube(mixed))
	kubelet, _ := registerDRA(t, folder)
	answer := kubelet.prepare(mixed)
	if answer.Error != "" || len(answer.Devices) != 1 || answer.Devices[0].DeviceName != "pf0vf1" {
		t.Errorf("prepare: %v", answer)
	}
}

func TestCopyOfATemplatesClaimIsAClaimOfItsOwn(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	copied := claim("copied", "", "pf0vf0")
	copied.Annotations = map[string]string{resourceapi.PodResourceClaimAnnotation: "nics"}
	startAgent(t, folder, newKube(copied))
	kubelet, _ := registerDRA(t, folder)
	answer := kubelet.prepare(copied)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	container, err := inject(t, folder, answer.Devices[0].CdiDeviceIds)
	if err != nil {
		t.Fatal(err)
	}
	described, err := vfinfo.FromEnvironment(container.Process.Env)
	if err != nil || len(described) != 1 || described[0].PodClaim != "" || described[0].Socket != "/run/softiov/claim/copied/request-0/vf.sock" {
		t.Errorf("%+v, %v", described, err)
	}
}

// The way of a VF from a claim to the domain of a virtual machine: agent, CDI file, container, sidecar.
func TestSidecarFindsTheVFsOfAPreparedClaim(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	// Kubernetes makes a claim from a template under a name with random letters, and notes the pod's own name of it.
	pair := claim("vm-nics-x7k2p", `"mac":"02:00:00:00:aa:02"`, "pf0vf0")
	pair.Annotations = map[string]string{resourceapi.PodResourceClaimAnnotation: "nics"}
	yes := true
	pair.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "vm", UID: "pod-uid", Controller: &yes}}
	startAgent(t, folder, newKube(pair))
	kubelet, _ := registerDRA(t, folder)
	answer := kubelet.prepare(pair)
	if answer.Error != "" {
		t.Fatal(answer.Error)
	}
	container, err := inject(t, folder, answer.Devices[0].CdiDeviceIds)
	if err != nil {
		t.Fatal(err)
	}
	sidecar := binding.Sidecar{Name: binding.DefaultName, Environment: container.Process.Env, NetworkInfo: "/nonexistent"}
	vmi := `{"spec":{"domain":{"devices":{"interfaces":[{"name":"nic","macAddress":"02:00:00:00:aa:02","binding":{"name":"softiov"}}]}},
	  "networks":[{"name":"nic","resourceClaim":{"claimName":"nics","requestName":"request-0"}}],
	  "resourceClaims":[{"name":"nics","resourceClaimTemplateName":"pair"}]}}`
	domain, err := sidecar.Define([]byte(`<domain type="kvm"><os><type machine="q35">hvm</type></os></domain>`), []byte(vmi))
	if err != nil || !strings.Contains(string(domain), "/run/softiov/template/nics/request-0/vf.sock") {
		t.Errorf("%v, %s", err, domain)
	}
	mounted := func(mount oci.Mount) bool { return mount.Destination == "/run/softiov/template/nics/request-0" }
	if !slices.ContainsFunc(container.Mounts, mounted) {
		t.Errorf("the folder of the socket is not mounted: %+v", container.Mounts)
	}
}

// The guide: what a command sets on a VF is final. A volatile value hides the claim's, which must not come back with the host.
func TestAdministratorsChangeOutlivesTheClaim(t *testing.T) {
	t.Parallel()
	_, host, _, kubelet := prepareFirst(t)
	setVLAN(t, host, "pf0vf1", "20")
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" || host.setting("pf0vf1", "vlan") != "20" {
		t.Errorf("%q, vlan %s", fault, host.setting("pf0vf1", "vlan"))
	}
}

func TestVolatileChangeEndsWithTheHost(t *testing.T) {
	t.Parallel()
	_, testHost, _, kubelet := prepareFirst(t)
	change := host.Change{Set: host.Settings{"vlan": json.RawMessage("20")}, Volatile: true}
	if err := testHost.client.ChangeVF(t.Context(), "pf0vf1", change); err != nil {
		t.Fatal(err)
	}
	if fault := kubelet.unprepare(claim("first", "", "pf0vf1")); fault != "" || testHost.setting("pf0vf1", "vlan") != "20" {
		t.Errorf("%q, vlan %s", fault, testHost.setting("pf0vf1", "vlan"))
	}
	testHost.stop()
	testHost.start()
	if vlan := testHost.setting("pf0vf1", "vlan"); vlan != "0" {
		t.Errorf("vlan %s after the claim, the volatile value and a restart of the host", vlan)
	}
}
