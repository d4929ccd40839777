package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// scenario returns the cluster. After the test it prints the cluster's state if the test has failed, and deletes the pods.
func scenario(t *testing.T) *testCluster {
	t.Helper()
	t.Cleanup(func() { cluster.removePods(t, "--all") })
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(cluster.report())
		}
	})
	return cluster
}

// must ends the test if a step fails.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// podSpec describes a test's pod with one container.
type podSpec struct {
	name, node, image string
	command           []string
	// vfs is the number of VFs by the device plugin, and claim the name of a template.
	vfs   int
	claim string
	// folder is one of the machine for SOFTIOV_CACHE.
	folder string
}

// create creates the pod.
func (p podSpec) create(t *testing.T, c *testCluster) {
	t.Helper()
	quoted := make([]string, len(p.command))
	for number, word := range p.command {
		quoted[number] = fmt.Sprintf("%q", word)
	}
	resources, claims := "", ""
	if p.vfs > 0 {
		resources = fmt.Sprintf("limits: {softiov.io/vf: %d}", p.vfs)
	}
	if p.claim != "" {
		resources = "claims: [{name: nic}]"
		claims = "resourceClaims: [{name: nic, resourceClaimTemplateName: " + p.claim + "}]"
	}
	mounts, volumes := "", ""
	if p.folder != "" {
		mounts = fmt.Sprintf(`
    env: [{name: SOFTIOV_CACHE, value: %q}]
    volumeMounts: [{name: files, mountPath: %q, readOnly: true}, {name: sockets, mountPath: /tmp}]`, p.folder, p.folder)
		volumes = fmt.Sprintf("volumes: [{name: files, hostPath: {path: %q, type: Directory}}, {name: sockets, emptyDir: {}}]", p.folder)
	}
	must(t, c.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  %s
  %s
  containers:
  - name: vmm
    image: %s
    imagePullPolicy: Never
    command: [%s]
    resources: {%s}%s
`, p.name, p.node, claims, volumes, p.image, strings.Join(quoted, ", "), resources, mounts)))
}

// removePods deletes some pods, or --all, and waits until they have ended.
func (c *testCluster) removePods(t *testing.T, names ...string) {
	t.Helper()
	if _, err := c.kubectl(append([]string{"delete", "pods", "--timeout=" + stepTimeout.String()}, names...)...); err != nil {
		t.Error(err)
	}
}

// reaches waits until the pod has a phase, and fails the test if it ends otherwise.
func (p podSpec) reaches(t *testing.T, c *testCluster, phase string) {
	t.Helper()
	must(t, eventually(stepTimeout, func() error {
		got, err := c.kubectl("get", "pod", p.name, "-o", "jsonpath={.status.phase}")
		if err != nil {
			return err
		}
		if got == "Failed" && phase != "Failed" {
			t.Fatalf("pod %s has failed:\n%s", p.name, p.log(c))
		}
		if got != phase {
			return fmt.Errorf("pod %s is %s, want %s", p.name, got, phase)
		}
		return nil
	}))
}

// progress waits until each pod has completed two more flows: the one under way, and a whole one. It fails the test if a
// flow is broken, since the pod's program then ends. A machine's flow is a run of its script.
func progress(t *testing.T, c *testCluster, pods ...podSpec) {
	t.Helper()
	before := make([]int, len(pods))
	for number, p := range pods {
		p.reaches(t, c, "Running")
		must(t, eventually(stepTimeout, func() (err error) {
			before[number], err = p.flows(c)
			return err
		}))
	}
	for number, p := range pods {
		must(t, eventually(stepTimeout, func() error {
			p.reaches(t, c, "Running")
			now, err := p.flows(c)
			if err == nil && now < before[number]+2 {
				err = fmt.Errorf("pod %s has sent %d flows, want more than %d:\n%s", p.name, now, before[number]+1, p.log(c))
			}
			return err
		}))
	}
}

// flows returns the number of flows that the pod has completed.
func (p podSpec) flows(c *testCluster) (int, error) {
	log, err := c.kubectl("logs", "--tail=5", p.name)
	number := 0
	for _, line := range strings.Split(log, "\n") {
		_, _ = fmt.Sscanf(line, "flow %d is intact", &number)
		_, _ = fmt.Sscanf(line, "run %d ended with status 0", &number)
	}
	return number, err
}

// prints waits until the pod's log has a text.
func (p podSpec) prints(t *testing.T, c *testCluster, text string) {
	t.Helper()
	must(t, eventually(stepTimeout, func() error {
		if log := p.log(c); !strings.Contains(log, text) {
			return fmt.Errorf("pod %s does not print %q:\n%s", p.name, text, log)
		}
		return nil
	}))
}

func (p podSpec) log(c *testCluster) string {
	log, err := c.kubectl("logs", p.name)
	if err != nil {
		return err.Error()
	}
	return log
}

// events returns the messages of the pod's events.
func (p podSpec) events(c *testCluster) (string, error) {
	return c.kubectl("get", "events", "--field-selector", "involvedObject.name="+p.name, "-o", "jsonpath={.items[*].message}")
}

// template creates a template of claims for VFs of a family on some port, with parameters of a policy.
func template(t *testing.T, c *testCluster, name, port string, count int, parameters string) {
	t.Helper()
	createTemplate(t, c, name, fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests:
      - name: nic
        exactly:
          deviceClassName: vf.softiov.io
          count: %d
          selectors:
          - cel: {expression: 'device.attributes["vf.softiov.io"].port == "%s"'}
      config:
      - requests: [nic]
        opaque:
          driver: vf.softiov.io
          parameters: {apiVersion: vf.softiov.io/v1alpha1, kind: VfPolicy%s}
`, name, count, port, parameters))
}

// createTemplate creates a template of claims from its manifest, and deletes it after the test.
func createTemplate(t *testing.T, c *testCluster, name, manifest string) {
	t.Helper()
	must(t, c.apply(manifest))
	t.Cleanup(func() {
		if _, err := c.kubectl("delete", "resourceclaimtemplate", name); err != nil {
			t.Error(err)
		}
	})
}

const image = repository + ":" + firstTag

// pluginSocket is the socket of a VF of the device plugin's port.
func pluginSocket(index int) string {
	return fmt.Sprintf("/run/softiov/pf1vf%d/vf.sock", index)
}

func TestPodWithTwoVFsOfTheDevicePluginDrivesThem(t *testing.T) {
	c := scenario(t)
	// All four, so that the names are known.
	drive := podSpec{name: "drive", node: "node1", image: image, vfs: 4,
		command: []string{"/softiov", "drive", "--socket", pluginSocket(0), "--socket", pluginSocket(1)}}
	drive.create(t, c)
	drive.reaches(t, c, "Succeeded")
	if log := drive.log(c); !strings.Contains(log, " 0 failed") {
		t.Errorf("the checks of the drivers:\n%s", log)
	}
}

// claimed returns a pod whose embedded guest drives the VF of its claim.
func claimed(name, claim, ip string, peer ...string) podSpec {
	return podSpec{name: name, node: "node1", image: guestImage, claim: claim, command: append([]string{"/guest", "/run/softiov", ip}, peer...)}
}

func TestClaimWithAVLANIsInForceOnThePlane(t *testing.T) {
	c := scenario(t)
	template(t, c, "vlan-100", "pf0", 1, ", vlan: 100, qos: 3")
	template(t, c, "vlan-10", "pf0", 1, ", vlan: 10")
	answering := claimed("answering", "vlan-100", "10.30.0.1")
	answering.create(t, c)
	answering.prints(t, c, "is up")
	outside := claimed("outside", "vlan-10", "10.30.0.3", "10.30.0.1")
	outside.create(t, c)
	inside := claimed("inside", "vlan-100", "10.30.0.2", "10.30.0.1")
	inside.create(t, c)
	progress(t, c, inside)
	outside.prints(t, c, "is silent after ping 2")
	if log := outside.log(c); strings.Contains(log, "answers") {
		t.Errorf("a VF of VLAN 10 reaches VLAN 100:\n%s", log)
	}
	// The host shows both policies, and takes them back with the claims.
	must(t, c.showsVLANs("100", "10"))
	c.removePods(t, "answering", "outside", "inside")
	must(t, eventually(stepTimeout, func() error { return c.showsVLANs() }))
}

// showsVLANs returns an error unless VFs of pf0 on the first node have these port VLANs, and no others.
func (c *testCluster) showsVLANs(want ...string) error {
	var found []string
	for index := range 3 {
		shown, err := c.inPod("host", c.nodes[0], "/softiov", "vf", "show", fmt.Sprintf("pf0vf%d", index), "--json")
		if err != nil {
			return err
		}
		var vf struct{ Settings struct{ VLAN int } }
		if err := json.Unmarshal([]byte(shown), &vf); err != nil {
			return fmt.Errorf("%w: %s", err, shown)
		}
		if vlan := vf.Settings.VLAN; vlan != 0 && !slices.Contains(found, fmt.Sprint(vlan)) {
			found = append(found, fmt.Sprint(vlan))
		}
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		return fmt.Errorf("VFs of pf0 have the VLANs %q, want %q", found, want)
	}
	return nil
}

func TestClaimWithAVLANThatIsNotAllowedIsRefused(t *testing.T) {
	c := scenario(t)
	template(t, c, "vlan-300", "pf0", 1, ", vlan: 300")
	refused := podSpec{name: "refused", node: "node1", image: image, claim: "vlan-300", command: []string{"/softiov", "--version"}}
	refused.create(t, c)
	must(t, eventually(stepTimeout, func() error {
		events, err := refused.events(c)
		if want := "VLAN 300 is not among the VF's allowed VLANs"; err == nil && !strings.Contains(events, want) {
			err = fmt.Errorf("the pod's events do not have %q: %s", want, events)
		}
		return err
	}))
}

// The chart's admission policy knows the node of an agent by its token.
func TestAgentMayNotChangeSlicesOfAnotherNode(t *testing.T) {
	c := scenario(t)
	slice, err := c.kubectl("get", "resourceslices", "--field-selector", "spec.nodeName=node1", "-o", "name")
	must(t, err)
	remove := func(node string) error {
		_, err := c.kubectl(append([]string{"delete", "--dry-run=server", "--as=system:serviceaccount:" + namespace + ":softiov",
			"--as-user-extra=authentication.kubernetes.io/node-name=" + node}, strings.Fields(slice)...)...)
		return err
	}
	if err := remove("node2"); err == nil || !strings.Contains(err.Error(), "an agent may write the ResourceSlices of its own node only") {
		t.Errorf("the agent of node2 may delete %s: %v", slice, err)
	}
	must(t, remove("node1"))
}
