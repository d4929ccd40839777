package guide

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// example is the folder of the example for a CI.
const example = "../../../docs/examples/kubernetes-ci"

func TestClusterOfTheExampleIsKinds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(example, "kind.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cluster v1alpha4.Cluster
	if err := yaml.UnmarshalStrict(text, &cluster); err != nil || len(cluster.Nodes) != 1 || cluster.Nodes[0].Role != v1alpha4.ControlPlaneRole {
		t.Errorf("%v, %+v", err, cluster)
	}
}

func TestFilesOfTheExampleCanBeRead(t *testing.T) {
	if output, err := exec.Command("sh", "-n", filepath.Join(example, "run.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	for _, name := range []string{"workflow.yml", "presubmit.yaml"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(text, &content); err != nil || len(content) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
