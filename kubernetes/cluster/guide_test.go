package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestChangedConfigurationIsApplied(t *testing.T) {
	c := scenario(t)
	must(t, c.changeValues("10,100-150", "10,100-180"))
	_, err := c.typeGuide("helm upgrade", nil)
	must(t, err)
	// Kubelet writes the file into the hosts' pods some time later.
	const change = "pf0vf0: vlans 10,100-150 -> 10,100-180"
	must(t, eventually(stepTimeout, func() error {
		printed, err := c.typeGuide("--dry-run", nil)
		if err == nil && strings.Count(printed, change) != len(c.nodes) {
			err = fmt.Errorf("the hosts would not change %q:\n%s", change, printed)
		}
		return err
	}))
	printed, err := c.typeGuide("softiov apply --file /etc/softiov/softiov.toml\n", nil)
	must(t, err)
	if strings.Count(printed, change) != len(c.nodes) {
		t.Errorf("the hosts change:\n%s", printed)
	}
	// Claims that select by VLAN see the change.
	const greatest = `jsonpath={.items[*].spec.devices[?(@.name=="pf0vf0")].attributes.vlanMax.int}`
	must(t, eventually(stepTimeout, func() error {
		found, err := c.kubectl("get", "resourceslices", "-o", greatest)
		if err == nil && found != "180 180" {
			err = fmt.Errorf("the greatest VLANs of pf0vf0 are %q", found)
		}
		return err
	}))
	must(t, c.waitInstalled())
}

func TestManifestsOfTheGuideAreAccepted(t *testing.T) {
	c := scenario(t)
	for text, values := range map[string]map[string]string{
		"kind: ResourceClaimTemplate": {"REGISTRY": "localhost"},
		"softiov.io/vf: 2":            {"REGISTRY": "localhost"},
		"kind: DeviceClass":           nil,
	} {
		manifest, err := guideBlock("yaml", text, values)
		must(t, err)
		must(t, c.apply(manifest, "--dry-run=server"))
	}
}

func TestOverlayOfTheGuideIsAccepted(t *testing.T) {
	c := scenario(t)
	overlay, err := guideBlock("yaml", "kind: Kustomization", map[string]string{"REGISTRY": "localhost"})
	must(t, err)
	folder := filepath.Join(c.folder, "overlay")
	must(t, os.Mkdir(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(overlay), 0o600))
	printed, err := c.typeGuide("--kustomize", map[string]string{"kubectl apply": "kubectl apply --dry-run=server"})
	must(t, err)
	for _, object := range []string{"namespace/softiov-system", "daemonset.apps/softiov-host", "daemonset.apps/softiov-agent"} {
		if !strings.Contains(printed, object) {
			t.Errorf("kubectl applies no %s:\n%s", object, printed)
		}
	}
}
