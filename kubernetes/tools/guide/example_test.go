package guide

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
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

// The agent's module names the oldest Go that builds it, and GitHub's machines may have an older one.
func TestGoOfTheExampleBuildsTheAgent(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	oldest := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)[1]
	for name, phrase := range map[string]string{"workflow.yml": `go-version: "%s"`, "run.sh": "Go %s or later", "presubmit.yaml": "Go %s or later"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if want := fmt.Sprintf(phrase, oldest); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s, %v", name, want, err)
		}
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
