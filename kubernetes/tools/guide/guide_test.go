// Package guide checks the manifests of the guide that are of KubeVirt and of the Network Plumbing Working Group, against
// the types of their APIs. It is a module of its own, because those types need many modules that the agent does not.
package guide

import (
	"os"
	"slices"
	"strings"
	"testing"

	network "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	kubevirt "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// page is the guide's page.
const page = "../../../docs/guide/kubernetes.md"

// objects returns the guide's objects of a kind, decoded strictly.
func objects[T any](t *testing.T, kind string) []*T {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []*T
	for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		for _, document := range strings.Split(block, "\n---\n") {
			var head struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(document), &head); err != nil {
				t.Fatal(err)
			}
			if head.APIVersion+" "+head.Kind != kind {
				continue
			}
			object := new(T)
			if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
				t.Errorf("%s: %v\n%s", kind, err, document)
			}
			all = append(all, object)
		}
	}
	if len(all) == 0 {
		t.Errorf("the page has no %s", kind)
	}
	return all
}

func TestMachinesOfTheGuideUseRegisteredBindings(t *testing.T) {
	bindings := map[string]kubevirt.InterfaceBindingPlugin{}
	for _, configuration := range objects[kubevirt.KubeVirt](t, "kubevirt.io/v1 KubeVirt") {
		for name, binding := range configuration.Spec.Configuration.NetworkConfiguration.Binding {
			bindings[name] = binding
		}
	}
	for _, machine := range objects[kubevirt.VirtualMachineInstance](t, "kubevirt.io/v1 VirtualMachineInstance") {
		for _, one := range machine.Spec.Domain.Devices.Interfaces {
			if one.Binding == nil {
				continue
			}
			binding, registered := bindings[one.Binding.Name]
			if !registered || binding.SidecarImage == "" {
				t.Errorf("interface %s: no sidecar is registered as %s", one.Name, one.Binding.Name)
			}
			at := slices.IndexFunc(machine.Spec.Networks, func(other kubevirt.Network) bool { return other.Name == one.Name })
			if at < 0 {
				t.Errorf("interface %s has no network", one.Name)
				continue
			}
			if claim := machine.Spec.Networks[at].ResourceClaim; claim != nil && !slices.ContainsFunc(machine.Spec.ResourceClaims,
				func(other kubevirt.VirtualMachineInstanceResourceClaim) bool { return other.Name == claim.ClaimName }) {
				t.Errorf("interface %s: the machine has no claim %s", one.Name, claim.ClaimName)
			}
		}
	}
}

func TestNetworksOfTheGuideFitTheirAPI(t *testing.T) {
	objects[network.NetworkAttachmentDefinition](t, "k8s.cni.cncf.io/v1 NetworkAttachmentDefinition")
}
