// Package tools checks the chart with Helm's own code, and writes the manifests of the kustomize base from it. It is a
// module of its own, because Helm has many dependencies that the agent does not need.
package tools

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

const (
	chartFolder = "../chart"
	// base is the chart with its default values, for kustomize.
	base = "../kustomize/softiov.yaml"
)

var write = flag.Bool("write", false, "write the manifests of the kustomize base")

// kubernetes is the release for which the chart is rendered.
var kubernetes = chartutil.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}

// render returns the chart's manifests with some values, in the order of their files.
func render(values map[string]any) (string, error) { return renderFor(kubernetes, values) }

// renderFor returns the chart's manifests for a release of Kubernetes.
func renderFor(version chartutil.KubeVersion, values map[string]any) (string, error) {
	chart, err := loader.Load(chartFolder)
	if err != nil {
		return "", err
	}
	release := chartutil.ReleaseOptions{Name: "softiov", Namespace: "softiov-system", IsInstall: true}
	cluster := chartutil.DefaultCapabilities.Copy()
	cluster.KubeVersion = version
	all, err := chartutil.ToRenderValues(chart, values, release, cluster)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var manifests []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); text != "" && strings.HasSuffix(name, ".yaml") {
			manifests = append(manifests, text)
		}
	}
	return strings.Join(manifests, "\n---\n") + "\n", nil
}

func TestChartHasNoLintError(t *testing.T) {
	for _, message := range lint.AllWithKubeVersion(chartFolder, nil, "softiov-system", &kubernetes).Messages {
		if message.Severity >= support.WarningSev {
			t.Error(message)
		}
	}
}

// Before 1.34 the API server knows no claims, and the device plugin needs none.
func TestOlderClusterHasTheDevicePluginOnly(t *testing.T) {
	older := chartutil.KubeVersion{Version: "v1.33.4+k3s1", Major: "1", Minor: "33"}
	if _, err := renderFor(older, nil); err == nil || !strings.Contains(err.Error(), "set agent.dra: false") {
		t.Errorf("claims: %v", err)
	}
	values := map[string]any{"agent": map[string]any{"dra": false, "devicePlugin": []any{"*"}}}
	if text, err := renderFor(older, values); err != nil || !strings.Contains(text, "--device-plugin=*") {
		t.Errorf("device plugin: %v", err)
	}
}

func TestKustomizeBaseIsTheChartsDefault(t *testing.T) {
	want, err := render(nil)
	if err != nil {
		t.Fatal(err)
	}
	want = "# Written from the chart: go test ./... -write, in kubernetes/tools.\n" +
		strings.ReplaceAll(want, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kustomize")
	if *write {
		if err := os.WriteFile(base, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(base); err != nil || string(got) != want {
		t.Errorf("%s differs from the chart, %v; run: go test ./... -write", base, err)
	}
}

// The values of the example for a CI are those of the chart, and its configuration of the host is in the manifests.
func TestValuesOfTheExampleRender(t *testing.T) {
	values, err := chartutil.ReadValuesFile("../../docs/examples/kubernetes-ci/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := render(values)
	if err != nil || !strings.Contains(text, `family = "virtio"`) || !strings.Contains(text, "--features-dir=") {
		t.Errorf("%v\n%s", err, text)
	}
	checkSchema(t, text)
}

func TestValuesChangeTheManifests(t *testing.T) {
	agent := func(values map[string]any) map[string]any { return map[string]any{"agent": values} }
	host := func(values map[string]any) map[string]any { return map[string]any{"host": values} }
	for _, test := range []struct {
		name           string
		values         map[string]any
		has, hasNot    string
		refusedBecause string
	}{
		{"ports for the device plugin", agent(map[string]any{"devicePlugin": []any{"pf1", "pf2=softiov.io/fast"}}),
			"--device-plugin=pf1,pf2=softiov.io/fast", "", ""},
		{"no claims, no access to the API", agent(map[string]any{"dra": false, "devicePlugin": []any{"*"}}), "--dra=false", "ClusterRole", ""},
		{"addresses of VFs differ by node", nil, "hostPath: {path: /etc/machine-id, type: File}", "", ""},
		{"ready when the host answers", map[string]any{"runtimeDir": "/srv/run"},
			"readinessProbe:\n          exec: {command: [/var/lib/softiov/bin/softiov, vf, list, --runtime-dir, /srv/run]}", "", ""},
		{"no tap, no device", nil, "--control=", "/dev/net/tun", ""},
		{"uplinks with tap", host(map[string]any{"tun": true, "config": "[[port]]\nuplink = { tap = \"softiov0\" }\n"}), "hostPath: {path: /dev/net/tun, type: CharDevice}", "", ""},
		{"tap without its device", host(map[string]any{"config": "[[port]]\nuplink = { tap = \"softiov0\" }\n"}), "", "", "set host.tun"},
		{"folder with a line break", map[string]any{"runtimeDir": "/srv\n/run"}, "", "", "runtimeDir"},
		{"no metrics", agent(map[string]any{"metricsPort": 0}), "--control=", "--listen", ""},
		{"another kubelet", map[string]any{"kubeletDir": "/var/snap/kubelet"}, "--registry-dir=/var/snap/kubelet/plugins_registry", "/var/lib/kubelet", ""},
		{"labels of the node", agent(map[string]any{"nodeFeatures": true}), "--release=0.1.0", "", ""},
		{"no labels of the node", nil, "--control=", "features", ""},
		{"CNI plugin", agent(map[string]any{"cniBinDir": "/opt/cni/bin"}), "command: [/softiov-node, install-cni, /opt/cni/bin]", "", ""},
		{"devices of pods from kubelet", map[string]any{"kubeletDir": "/var/snap/kubelet"},
			"--pod-resources=/var/snap/kubelet/pod-resources/kubelet.sock", "", ""},
		{"CNI plugin without its agent", map[string]any{"stateDir": "/srv/softiov", "agent": map[string]any{"cniBinDir": "/opt/cni/bin"}},
			"", "", "softiov-cni asks the agent in /var/lib/softiov"},
		{"image of one architecture", nil, "nodeSelector:\n        kubernetes.io/arch: amd64", "imagePullSecrets", ""},
		{"own nodes of that architecture", map[string]any{"nodeSelector": map[string]any{"zone": "lab"}},
			"nodeSelector:\n        kubernetes.io/arch: amd64\n        zone: lab", "", ""},
		{"registry with a password", map[string]any{"imagePullSecrets": []any{map[string]any{"name": "registry"}}},
			"imagePullSecrets:\n      - name: registry\n      nodeSelector", "", ""},
		{"password that is no name of a secret", map[string]any{"imagePullSecrets": []any{"registry"}}, "", "", "imagePullSecrets"},
		{"CNI plugin in a relative folder", agent(map[string]any{"cniBinDir": "bin"}), "", "", "cniBinDir"},
		{"typing error", agent(map[string]any{"draa": true}), "", "", "draa"},
		{"privilege that is none", agent(map[string]any{"claimsMay": []any{"vlan"}}), "", "", "claimsMay"},
		{"folders belong to the chart", map[string]any{"host": map[string]any{"config": "runtime_dir = \"/x\"\n"}}, "", "", "config"},
	} {
		got, err := render(test.values)
		switch {
		case test.refusedBecause != "":
			if err == nil || !strings.Contains(err.Error(), test.refusedBecause) {
				t.Errorf("%s: %v, want an error about %s", test.name, err, test.refusedBecause)
			}
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case !strings.Contains(got, test.has) || test.hasNot != "" && strings.Contains(got, test.hasNot):
			t.Errorf("%s: the manifests lack %q or have %q", test.name, test.has, test.hasNot)
		}
	}
}
