// Package kubevirt checks the network binding plugin with KubeVirt's own code: domains that its converter makes, and its
// client of hooks. It is a module of its own, because KubeVirt needs other versions of Kubernetes' modules than the agent.
package kubevirt

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "kubevirt.io/api/core/v1"

	"kubevirt.io/kubevirt/pkg/hooks/info"
	"kubevirt.io/kubevirt/pkg/hooks/v1alpha3"
	"kubevirt.io/kubevirt/pkg/libvmi"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/arch"
)

// domainFile is the domain that the plugin returns, for tests with libvirt itself.
const domainFile = "testdata/domain.xml"

var write = flag.Bool("write", false, "write "+domainFile)

// vfs are the variables of a sidecar whose claim has a VF of each kind.
var vfs = []string{
	`SOFTIOV_INFO_PF2VF0={"vf":"pf2vf0","family":"virtio","protocol":"vhost-user","socket":"/run/softiov/template/nics/fast/vf.sock",` +
		`"mac":"02:00:00:00:00:02","claim":"web-nics-x7k2p","podClaim":"nics","request":"fast"}`,
	`SOFTIOV_INFO_PF0VF1={"vf":"pf0vf1","family":"82576","protocol":"vfio-user","socket":"/run/softiov/template/nics/real/vf.sock",` +
		`"mac":"02:00:00:00:00:01","claim":"web-nics-x7k2p","podClaim":"nics","request":"real"}`,
	"NETWORK_BINDING_PLUGIN_NAME=cards",
}

// startSidecar builds the program, starts it as a sidecar, and returns a connection to it and its process.
func startSidecar(t *testing.T) (*grpc.ClientConn, *exec.Cmd) {
	t.Helper()
	folder, err := os.MkdirTemp("", "kv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	program := filepath.Join(folder, "softiov-node")
	build := exec.Command("go", "build", "-o", program, "./cmd/softiov-node")
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	process := exec.Command(program, "binding", "--hooks-dir", folder)
	process.Env, process.Stderr = vfs, os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Process.Kill() })
	connection, err := grpc.NewClient("unix:"+filepath.Join(folder, "softiov.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection, process
}

// machine returns a virtual machine with a masquerade interface and two of the plugin.
func machine() *v1.VirtualMachineInstance {
	bound := func(name string) v1.Interface {
		return v1.Interface{Name: name, Binding: &v1.PluginBinding{Name: "cards"}}
	}
	vmi := libvmi.New(
		libvmi.WithName("web"), libvmi.WithNamespace("default"), libvmi.WithMemoryRequest("256Mi"), libvmi.WithCPUCount(2, 1, 1),
		libvmi.WithInterface(libvmi.InterfaceDeviceWithMasqueradeBinding()), libvmi.WithNetwork(v1.DefaultPodNetwork()),
		libvmi.WithInterface(bound("fast")), libvmi.WithInterface(bound("real")),
		libvmi.WithPersistentVolumeClaim("disk0", "disk0"),
	)
	vmi.UID = "7cbf2dd5-3a5e-4b8d-9b0e-6f2d7a4f7b11"
	// For such a machine, KubeVirt gives QEMU arguments of its own.
	vmi.Annotations = map[string]string{v1.IgnitionAnnotation: `{"ignition":{"version":"3.0.0"}}`}
	for _, name := range []string{"fast", "real"} {
		vmi.Spec.Networks = append(vmi.Spec.Networks, v1.Network{Name: name})
	}
	return vmi
}

// vmiJSON returns the machine as a KubeVirt with claims of networks sends it (1.9 or later).
func vmiJSON(t *testing.T, vmi *v1.VirtualMachineInstance) []byte {
	t.Helper()
	encoded, err := json.Marshal(vmi)
	if err != nil {
		t.Fatal(err)
	}
	text := string(encoded)
	for _, name := range []string{"fast", "real"} {
		text = strings.Replace(text, `{"name":"`+name+`"}`,
			`{"name":"`+name+`","resourceClaim":{"claimName":"nics","requestName":"`+name+`"}}`, 1)
	}
	return []byte(strings.Replace(text, `"networks":[`, `"resourceClaims":[{"name":"nics","resourceClaimTemplateName":"pair"}],"networks":[`, 1))
}

// domainOf returns the domain that KubeVirt makes of a virtual machine.
func domainOf(t *testing.T, vmi *v1.VirtualMachineInstance) *api.Domain {
	t.Helper()
	domain := &api.Domain{}
	context := &converter.ConverterContext{
		Architecture: arch.NewConverter("amd64"), VirtualMachine: vmi, AllowEmulation: true, MemBalloonStatsPeriod: 10,
		DomainAttachmentByInterfaceName: map[string]string{"default": string(v1.Tap)}, SMBios: nil,
	}
	if err := converter.Convert_v1_VirtualMachineInstance_To_api_Domain(vmi, domain, context); err != nil {
		t.Fatal(err)
	}
	api.NewDefaulter("amd64").SetObjectDefaults_Domain(domain)
	return domain
}

func TestPluginAddsVFsToADomainOfKubeVirt(t *testing.T) {
	connection, process := startSidecar(t)
	described, err := info.NewInfoClient(connection).Info(context.Background(), &info.InfoParams{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	for _, point := range described.GetHookPoints() {
		points = append(points, point.GetName())
	}
	if !slices.Equal(described.GetVersions(), []string{v1alpha3.Version}) ||
		!slices.Equal(points, []string{info.OnDefineDomainHookPointName, info.ShutdownHookPointName}) {
		t.Errorf("%v, %v", described.GetVersions(), points)
	}
	vmi := machine()
	before := domainOf(t, vmi)
	// virt-launcher sends the domain in this form (pkg/hooks/manager.go).
	text, err := xml.MarshalIndent(&before.Spec, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	hooks := v1alpha3.NewCallbacksClient(connection)
	result, err := hooks.OnDefineDomain(context.Background(), &v1alpha3.OnDefineDomainParams{DomainXML: text, Vmi: vmiJSON(t, vmi)})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, result.GetDomainXML())
	checkDomain(t, &before.Spec, result.GetDomainXML())
	callAgain(t, hooks, result.GetDomainXML(), vmiJSON(t, vmi))
	if _, err := hooks.Shutdown(context.Background(), &v1alpha3.ShutdownParams{}); err != nil {
		t.Error(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("the sidecar ended with an error: %v", err)
	}
}

// callAgain calls the hook with the plugin's domain as KubeVirt's types decode and encode it, without the socket's path.
// Reported for hooks with a vhostuser device (kubevirt#11276): virt-launcher calls the hook twice.
func callAgain(t *testing.T, hooks v1alpha3.CallbacksClient, domainXML, vmi []byte) {
	t.Helper()
	decoded := &api.DomainSpec{}
	if err := xml.Unmarshal(domainXML, decoded); err != nil {
		t.Fatal(err)
	}
	encoded, err := xml.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	result, err := hooks.OnDefineDomain(context.Background(), &v1alpha3.OnDefineDomainParams{DomainXML: encoded, Vmi: vmi})
	if err != nil {
		t.Fatal(err)
	}
	text := string(result.GetDomainXML())
	if strings.Count(text, `type="vhostuser"`) != 1 || strings.Count(text, "/run/softiov/template/nics/fast/vf.sock") != 1 ||
		strings.Count(text, "vfio-user-pci") != 1 || strings.Count(text, `model="pcie-root-port"`) != 1 {
		t.Error(text)
	}
}

// keep compares the plugin's domain with the file for tests with libvirt.
func keep(t *testing.T, text []byte) {
	t.Helper()
	if *write {
		if err := os.WriteFile(domainFile, append(slices.Clone(text), '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(domainFile); err != nil || strings.TrimSpace(string(kept)) != strings.TrimSpace(string(text)) {
		t.Errorf("%s differs, %v; run: go test ./... -write", domainFile, err)
	}
}

// checkDomain compares a domain with the plugin's changes, both in KubeVirt's types.
func checkDomain(t *testing.T, before *api.DomainSpec, text []byte) {
	t.Helper()
	after := &api.DomainSpec{}
	if err := xml.Unmarshal(text, after); err != nil {
		t.Fatal(err)
	}
	if access := after.MemoryBacking; access == nil || access.Access == nil || access.Access.Mode != "shared" || access.Source.Type != "memfd" {
		t.Errorf("memory %+v", access)
	}
	at := slices.IndexFunc(after.Devices.Interfaces, func(one api.Interface) bool { return one.Alias != nil && one.Alias.GetName() == "fast" })
	if at < 0 {
		t.Fatalf("interfaces %+v", after.Devices.Interfaces)
	}
	// KubeVirt's type of an interface has no path of a socket. virt-launcher gives libvirt the plugin's text, not this type.
	path := `path="/run/softiov/template/nics/fast/vf.sock"`
	if added := after.Devices.Interfaces[at]; added.Type != "vhostuser" || added.MAC.MAC != "02:00:00:00:00:02" || !strings.Contains(string(text), path) {
		t.Errorf("interface %+v", added)
	}
	checkArguments(t, text)
	// Without the plugin's additions the domain is KubeVirt's, element by element.
	after.MemoryBacking = before.MemoryBacking
	after.Devices.Interfaces = slices.Delete(after.Devices.Interfaces, at, at+1)
	after.Devices.Controllers = after.Devices.Controllers[:len(after.Devices.Controllers)-1]
	got, want := canonical(t, after), canonical(t, roundTrip(t, before))
	if got != want {
		t.Errorf("the plugin changed more than it should; before:\n%s\nafter:\n%s", want, got)
	}
}

// checkArguments checks QEMU's arguments: KubeVirt's stay, and the plugin's follow. KubeVirt's type cannot decode them.
func checkArguments(t *testing.T, text []byte) {
	t.Helper()
	var domain struct {
		Arguments []struct {
			Value string `xml:"value,attr"`
		} `xml:"http://libvirt.org/schemas/domain/qemu/1.0 commandline>arg"`
	}
	if err := xml.Unmarshal(text, &domain); err != nil {
		t.Fatal(err)
	}
	if len(domain.Arguments) != 4 || domain.Arguments[0].Value != "-fw_cfg" || domain.Arguments[2].Value != "-device" ||
		!strings.Contains(domain.Arguments[3].Value, `"path":"/run/softiov/template/nics/real/vf.sock"`) {
		t.Errorf("arguments %+v", domain.Arguments)
	}
}

// roundTrip encodes and decodes a domain, which drops what only KubeVirt's memory has.
func roundTrip(t *testing.T, spec *api.DomainSpec) *api.DomainSpec {
	t.Helper()
	encoded, err := xml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &api.DomainSpec{}
	if err := xml.Unmarshal(encoded, decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func canonical(t *testing.T, spec *api.DomainSpec) string {
	t.Helper()
	encoded, err := xml.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}
