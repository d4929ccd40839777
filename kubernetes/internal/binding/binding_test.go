package binding

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/vfinfo"
)

// machine is a virtual machine with two interfaces of the plugin and one of another.
const machine = `{"metadata":{"name":"web"},"spec":{
  "domain":{"devices":{"networkInterfaceMultiqueue":true,"interfaces":[
    {"name":"default","masquerade":{}},
    {"name":"fast","binding":{"name":"softiov"},"bootOrder":2},
    {"name":"real","binding":{"name":"softiov"}},
    {"name":"gone","binding":{"name":"softiov"},"state":"absent"}]}},
  "networks":[
    {"name":"default","pod":{}},
    {"name":"fast","resourceClaim":{"claimName":"nics","requestName":"fast"}},
    {"name":"real","resourceClaim":{"claimName":"nics","requestName":"real"}},
    {"name":"gone","resourceClaim":{"claimName":"nics","requestName":"real"}}],
  "resourceClaims":[{"name":"nics","resourceClaimTemplateName":"pair"}]}}`

// plain is a domain with nothing but a processor and a disk.
const plain = `<domain type="kvm"><name>default_web</name><memory unit="MiB">256</memory><vcpu>4</vcpu>
  <os><type arch="x86_64" machine="q35">hvm</type></os>
  <devices><disk type="file" device="disk"><target dev="vda" bus="virtio"/></disk></devices></domain>`

// record is the claim of the machine's pod.
var record = claims.Record{
	UID: "uid", Namespace: "default", Name: "web-nics-x7k2p", PodClaim: "nics",
	Devices: []claims.Device{
		{VF: "pf0vf1", Socket: "/run/softiov/pf0vf1/vf.sock", Family: "82576", MAC: "02:00:00:00:00:01", Requests: []string{"real"}},
		{VF: "pf2vf0", Socket: "/run/softiov/pf2vf0/vf.sock", Family: "virtio", MAC: "02:00:00:00:00:02", Requests: []string{"fast/virtio"}},
	},
}

// environment returns the variables of a container with all VFs of a record.
func environment(record *claims.Record) []string {
	var all []string
	for i := range record.Devices {
		info := vfinfo.Of(record, &record.Devices[i])
		all = append(all, info.Variables()...)
	}
	return all
}

func sidecar() *Sidecar {
	return &Sidecar{Name: "softiov", Environment: environment(&record), NetworkInfo: "/nonexistent"}
}

// define adds the VFs to a domain, and decodes the result.
func define(t *testing.T, s *Sidecar, domain, vmi string) *libvirtxml.Domain {
	t.Helper()
	text, err := s.Define([]byte(domain), []byte(vmi))
	if err != nil {
		t.Fatal(err)
	}
	parsed := &libvirtxml.Domain{}
	if err := parsed.Unmarshal(string(text)); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestEachFamilyGetsItsFormOfDevice(t *testing.T) {
	domain := define(t, sidecar(), plain, machine)
	if domain.MemoryBacking.MemorySource.Type != "memfd" || domain.MemoryBacking.MemoryAccess.Mode != "shared" {
		t.Errorf("memory %+v", domain.MemoryBacking)
	}
	if len(domain.Devices.Interfaces) != 1 {
		t.Fatalf("interfaces %+v", domain.Devices.Interfaces)
	}
	text, err := domain.Devices.Interfaces[0].Marshal()
	want := `<interface type="vhostuser">
  <mac address="02:00:00:00:00:02"></mac>
  <source type="unix" mode="client" path="/run/softiov/template/nics/fast/vf.sock">
    <reconnect enabled="yes" timeout="1"></reconnect>
  </source>
  <boot order="2"></boot>
  <model type="virtio-non-transitional"></model>
  <driver queues="4"></driver>
  <alias name="ua-fast"></alias>
</interface>`
	if err != nil || text != want {
		t.Errorf("%v, %s", err, text)
	}
	device := `{"driver":"vfio-user-pci","id":"softiov-real","bus":"ua-softiov-port-real","addr":"0x0",` +
		`"socket":{"type":"unix","path":"/run/softiov/template/nics/real/vf.sock"}}`
	arguments := domain.QEMUCommandline.Args
	if len(arguments) != 2 || arguments[0].Value != "-device" || arguments[1].Value != device {
		t.Errorf("arguments %v", arguments)
	}
	// The disk, the virtio interface and eight devices of libvirt have the ports 1 to 10.
	if port := domain.Devices.Controllers[0]; port.Type != "pci" || port.Model != "pcie-root-port" || *port.Index != 11 || port.Alias.Name != "ua-softiov-port-real" {
		t.Errorf("port %+v", port)
	}
}

func TestRepetitionReplacesTheDevices(t *testing.T) {
	first, err := sidecar().Define([]byte(plain), []byte(machine))
	if err != nil {
		t.Fatal(err)
	}
	second, err := sidecar().Define(first, []byte(machine))
	if err != nil || string(second) != string(first) {
		t.Errorf("%v\n%s", err, second)
	}
	// KubeVirt's own types do not decode QEMU's arguments.
	forgetful := define(t, sidecar(), plain, machine)
	forgetful.QEMUCommandline = nil
	text, err := forgetful.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := sidecar().Define([]byte(text), []byte(machine)); err != nil || string(again) != string(first) {
		t.Errorf("%v\n%s", err, again)
	}
}

// Reported for KubeVirt (kubevirt#3837): the firmware boots from interfaces that have no boot order.
func TestFirmwareBootsOnlyFromInterfacesWithABootOrder(t *testing.T) {
	if rom := define(t, sidecar(), plain, machine).Devices.Interfaces[0].ROM; rom != nil {
		t.Errorf("%+v", rom)
	}
	rom := define(t, sidecar(), plain, strings.Replace(machine, `,"bootOrder":2`, "", 1)).Devices.Interfaces[0].ROM
	if rom == nil || rom.Enabled != "no" {
		t.Errorf("%+v", rom)
	}
}

func TestMemoryBecomesShared(t *testing.T) {
	for _, test := range []struct{ name, backing, source, fault string }{
		// Reported for the plugin of kubevirt#19044: memory that has a source and no access mode stayed private.
		{"source without access", `<memoryBacking><source type="memfd"/></memoryBacking>`, "memfd", ""},
		{"huge pages with memfd", `<memoryBacking><hugepages/><source type="memfd"/></memoryBacking>`, "memfd", ""},
		{"huge pages without a source", `<memoryBacking><hugepages/></memoryBacking>`, "", ""},
		{"locked", `<memoryBacking><locked/></memoryBacking>`, "memfd", ""},
		{"shared by virtiofs", `<memoryBacking><source type="memfd"/><access mode="shared"/></memoryBacking>`, "memfd", ""},
		{"private", `<memoryBacking><access mode="private"/></memoryBacking>`, "", "access mode private, and VFs need shared"},
		{"anonymous", `<memoryBacking><source type="anonymous"/></memoryBacking>`, "", "memory is anonymous"},
		{"private cell", `<cpu><numa><cell id="0" cpus="0" memory="1" memAccess="private"/></numa></cpu>`, "", "NUMA cell 0"},
	} {
		text := strings.Replace(plain, "<devices>", test.backing+"<devices>", 1)
		if test.fault != "" {
			if _, err := sidecar().Define([]byte(text), []byte(machine)); err == nil || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: %v, want %q", test.name, err, test.fault)
			}
			continue
		}
		memory := define(t, sidecar(), text, machine).MemoryBacking
		source := ""
		if memory.MemorySource != nil {
			source = memory.MemorySource.Type
		}
		if memory.MemoryAccess.Mode != "shared" || source != test.source {
			t.Errorf("%s: source %q, access %+v", test.name, source, memory.MemoryAccess)
		}
	}
}

func TestImpossibleInterfacesAreRefusedWithTheRemedy(t *testing.T) {
	replace := func(old, new string) func(string) string {
		return func(vmi string) string { return strings.Replace(vmi, old, new, 1) }
	}
	for _, test := range []struct {
		name string
		edit func(string) string
		want string
	}{
		{"other name", replace(`{"name":"softiov"},"bootOrder":2`, `{"name":"x"}`), ""},
		{"unknown request", replace(`"requestName":"fast"`, `"requestName":"slow"`),
			"interface fast: the sidecar has no VF of claim nics, request slow (it has: pf0vf1, pf2vf0)"},
		{"unknown claim", replace(`"claimName":"nics"`, `"claimName":"nicks"`), "spec.resourceClaims has no claim nicks"},
		{"no network", replace(`{"name":"fast","resourceClaim"`, `{"name":"other","resourceClaim"`), "spec.networks has no network"},
		{"other address", replace(`"bootOrder":2`, `"macAddress":"02-00-00-00-00-09"`),
			`macAddress is 02:00:00:00:00:09, but VF pf2vf0 has the address 02:00:00:00:00:02; set mac: "02:00:00:00:00:09" in the claim`},
		{"bad address", replace(`"bootOrder":2`, `"macAddress":"02"`), "is not an Ethernet address"},
		{"model", replace(`"bootOrder":2`, `"model":"e1000e"`), "model e1000e does not fit VF pf2vf0"},
		{"model of a real card", replace(`"name":"real","binding"`, `"name":"real","model":"virtio","binding"`), "the card decides its model"},
		{"state of a real card", replace(`"name":"real","binding"`, `"name":"real","state":"down","binding"`), "set state: disable in the claim"},
		{"place of a real card", replace(`"name":"real","binding"`, `"name":"real","pciAddress":"0000:01:00.0","binding"`), "a root port of its own"},
		{"ACPI index of a real card", replace(`"name":"real","binding"`, `"name":"real","acpiIndex":7,"binding"`), "acpiIndex is not supported"},
		{"bad place", replace(`"bootOrder":2`, `"pciAddress":"01:00.0"`), "has not the form 0000:81:01.0"},
		{"place with more text", replace(`"bootOrder":2`, `"pciAddress":"0000:81:01.0z"`), "0000:81:01.0z has not the form"},
		{"one VF twice", replace(`"requestName":"real"`, `"requestName":"fast"`), "interface real has the VF of interface fast; give each"},
		{"not JSON", replace(`{`, `[`), "invalid VirtualMachineInstance"},
	} {
		_, err := sidecar().Define([]byte(plain), []byte(test.edit(machine)))
		if got := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := (&Sidecar{Name: "fast-nics"}).Define([]byte(plain), []byte(machine)); err == nil ||
		!strings.Contains(err.Error(), "under another name than fast-nics") {
		t.Error(err)
	}
	i440fx := strings.Replace(plain, "q35", "pc-i440fx", 1)
	if _, err := sidecar().Define([]byte(i440fx), []byte(machine)); err == nil || !strings.Contains(err.Error(), "not a q35") {
		t.Error(err)
	}
}

func TestRequestWithSeveralVFsIsRefused(t *testing.T) {
	several := record
	several.Devices = append([]claims.Device{{VF: "pf0vf2", Socket: "/run/softiov/pf0vf2/vf.sock", Family: "82576", Requests: []string{"real"}}},
		record.Devices...)
	s := &Sidecar{Name: "softiov", Environment: environment(&several)}
	if _, err := s.Define([]byte(plain), []byte(machine)); err == nil || !strings.Contains(err.Error(), "has 2 VFs (pf0vf1, pf0vf2)") {
		t.Error(err)
	}
}

func TestClaimThatExistsBeforeItsPodIsFound(t *testing.T) {
	direct := record
	direct.Name, direct.PodClaim = "shared-nics", ""
	s := &Sidecar{Name: "softiov", Environment: environment(&direct)}
	vmi := strings.Replace(machine, `"resourceClaimTemplateName":"pair"`, `"resourceClaimName":"shared-nics"`, 1)
	domain := define(t, s, plain, vmi)
	if path := domain.Devices.Interfaces[0].Source.VHostUser.Chardev.UNIX.Path; path != "/run/softiov/claim/shared-nics/fast/vf.sock" {
		t.Error(path)
	}
	// The claim of a template is not the claim with the same name.
	if _, err := sidecar().Define([]byte(plain), []byte(vmi)); err == nil {
		t.Error("a claim from a template is taken for one that exists before its pod")
	}
}

// multus is a virtual machine whose network is of Multus.
const multus = `{"spec":{"domain":{"devices":{"interfaces":[{"name":"fast","binding":{"name":"softiov"}}]}},
  "networks":[{"name":"fast","multus":{"networkName":"vf"}}]}}`

// reported is what a CNI plugin reports of the machine's network.
const reported = `{"interfaces":[{"network":"fast","mac":"02:00:00:00:00:07","deviceInfo":{"type":"vhost-user","version":"1.1.0",
  "vhost-user":{"mode":"client","path":"/run/softiov/pf2vf1/vf.sock"}}}]}`

// reports returns a file with what CNI plugins report.
func reports(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "network-info")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestNetworkOfMultusHasTheSocketThatItsPluginReports(t *testing.T) {
	s := &Sidecar{Name: "softiov", NetworkInfo: reports(t, reported)}
	device := define(t, s, plain, multus).Devices.Interfaces[0]
	if device.Source.VHostUser.Chardev.UNIX.Path != "/run/softiov/pf2vf1/vf.sock" || device.MAC.Address != "02:00:00:00:00:07" {
		t.Errorf("%+v", device)
	}
}

func TestNetworkOfMultusWithoutAVFNamesTheRemedy(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"empty", "", "is empty, and KubeVirt fills it when Multus has ended; virt-launcher asks again"},
		{"damaged", "{", "unexpected end of JSON"},
		{"no interfaces", "{}", "network fast is not among those that CNI plugins report (none)"},
		{"others", `{"interfaces":[{"network":"blue"},{"network":"red"}]}`, "(blue, red); give the network a resourceClaim, or a"},
		{"other plugin", `{"interfaces":[{"network":"fast","deviceInfo":{"type":"pci"}}]}`, "a device of type pci, and no VF of family virtio"},
		{"no device", `{"interfaces":[{"network":"fast"}]}`, "no description of a device: declare the capability CNIDeviceInfoFile"},
	} {
		s := &Sidecar{Name: "softiov", NetworkInfo: reports(t, test.content), pause: func(attempt int) bool { return attempt < 2 }}
		if _, err := s.Define([]byte(plain), []byte(multus)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	s := &Sidecar{Name: "softiov", NetworkInfo: "/nonexistent"}
	if _, err := s.Define([]byte(plain), []byte(multus)); err == nil || !strings.Contains(err.Error(), "downwardAPI: device-info") {
		t.Error(err)
	}
}

// Reported for KubeVirt (kubevirt#15634): the sidecar of a new pod starts before the report is there.
func TestSidecarWaitsForTheReportsOfMultus(t *testing.T) {
	file := reports(t, "")
	s := &Sidecar{Name: "softiov", NetworkInfo: file, pause: func(int) bool {
		// As kubelet does: by a rename.
		if err := errors.Join(os.WriteFile(file+".new", []byte(reported), 0o600), os.Rename(file+".new", file)); err != nil {
			t.Error(err)
		}
		return true
	}}
	if path := define(t, s, plain, multus).Devices.Interfaces[0].Source.VHostUser.Chardev.UNIX.Path; path != "/run/softiov/pf2vf1/vf.sock" {
		t.Error(path)
	}
}
