package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/api/metadata"
	"k8s.io/dynamic-resource-allocation/devicemetadata"

	"softiov.io/kubernetes/internal/dra"
)

// metadataOf reads a file of attributes of a container as the consumers do: KubeVirt's sidecars, for example (VEP 183).
func metadataOf(t *testing.T, container *oci.Spec, destination string) metadata.Device {
	t.Helper()
	at := slices.IndexFunc(container.Mounts, func(mount oci.Mount) bool { return mount.Destination == destination })
	if at < 0 {
		t.Fatalf("%s is not mounted: %+v", destination, container.Mounts)
	}
	file, err := os.Open(container.Mounts[at].Source)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var described metadata.DeviceMetadata
	var invalid error
	validation := devicemetadata.DecodeMetadataWithValidationResult(&invalid)
	if err := devicemetadata.DecodeMetadataFromStream(json.NewDecoder(file), &described, validation); err != nil || invalid != nil {
		t.Fatal(err, invalid)
	}
	if len(described.Requests) != 1 || len(described.Requests[0].Devices) != 1 {
		t.Fatalf("%+v", described)
	}
	return described.Requests[0].Devices[0]
}

// text returns an attribute as a text.
func text(device metadata.Device, name resourceapi.QualifiedName) string {
	value := device.Attributes[name]
	encoded, _ := json.Marshal(value)
	_, after, _ := strings.Cut(string(encoded), ":")
	return strings.Trim(after, `"}`)
}

func TestContainerHasAFileWithTheAttributesOfItsVF(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	startHost(t, folder)
	direct := claim("direct", `"vlan":100,"mac":"02:00:00:00:aa:03"`, "pf0vf1")
	template := claim("vm-nics-x7k2p", "", "pf1vf0")
	template.Annotations = map[string]string{resourceapi.PodResourceClaimAnnotation: "nics"}
	yes := true
	template.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "vm", UID: "pod-uid", Controller: &yes}}
	agent := startAgent(t, folder, newKube(direct, template), func(c *config) { c.metadata = true })
	kubelet, _ := registerDRA(t, folder)
	eventually(t, "slices have the attributes to compare with", func() bool { return len(agent.offered()) == 6 })
	for _, test := range []struct {
		claim      *resourceapi.ResourceClaim
		file, want string
		attributes map[resourceapi.QualifiedName]string
	}{
		{direct, metadata.ResourceClaimFilePath(dra.DriverName, "direct", "request-0"), "pf0vf1", map[resourceapi.QualifiedName]string{
			"family": "82576", "port": "pf0", "index": "1", "vlans": "10,20,100-199", "vlan": "100", "protocol": "vfio-user",
			"socket": "/run/softiov/claim/direct/request-0/vf.sock",
		}},
		{template, metadata.ResourceClaimTemplateFilePath(dra.DriverName, "nics", "request-0"), "pf1vf0", map[resourceapi.QualifiedName]string{
			"family": "avf", "port": "pf1", "index": "0", "vlan": "0", "socket": "/run/softiov/template/nics/request-0/vf.sock",
		}},
	} {
		answer := kubelet.prepare(test.claim)
		if answer.Error != "" {
			t.Fatal(answer.Error)
		}
		container, err := inject(t, folder, answer.Devices[0].CdiDeviceIds)
		if err != nil {
			t.Fatal(err)
		}
		device := metadataOf(t, container, test.file)
		if device.Driver != dra.DriverName || device.Pool != node || device.Name != test.want {
			t.Errorf("device %+v", device)
		}
		for name, want := range test.attributes {
			if got := text(device, name); got != want {
				t.Errorf("%s of %s is %q, want %q", name, test.want, got, want)
			}
		}
		published := agent.offered()[test.want]
		for name := range published.Attributes {
			if _, present := device.Attributes[name]; !present {
				t.Errorf("the file lacks %s, which the slice has", name)
			}
		}
		if device.NetworkData == nil || len(device.NetworkData.HardwareAddress) != len("02:00:00:00:aa:03") {
			t.Fatalf("network data %+v", device.NetworkData)
		}
		if test.claim == direct && device.NetworkData.HardwareAddress != "02:00:00:00:aa:03" {
			t.Errorf("address %s", device.NetworkData.HardwareAddress)
		}
	}
}
