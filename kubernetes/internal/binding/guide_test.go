package binding

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"softiov.io/kubernetes/internal/claims"
)

// page is the guide's page.
const page = "../../../docs/guide/kubernetes.md"

func TestMachinesOfTheGuideGetTheirVF(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	claim := claims.Record{Name: "web-nic-x7k2p", PodClaim: "nic", Devices: []claims.Device{
		{VF: "pf0vf1", Socket: "/run/softiov/pf0vf1/vf.sock", Family: "82576", MAC: "02:00:00:00:01:00", Requests: []string{"nic"}},
	}}
	s := &Sidecar{Name: "softiov", Environment: environment(&claim), NetworkInfo: "/nonexistent"}
	machines := 0
	for _, part := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		if !strings.Contains(block, "kind: VirtualMachineInstance") {
			continue
		}
		machines++
		vmi, err := yaml.YAMLToJSON([]byte(block))
		if err != nil {
			t.Fatal(err)
		}
		if domain := define(t, s, plain, string(vmi)); len(domain.QEMUCommandline.Args) != 2 {
			t.Errorf("arguments %v", domain.QEMUCommandline)
		}
	}
	if machines == 0 {
		t.Error("the page has no machine")
	}
}
