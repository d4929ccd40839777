package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// testCluster is a running cluster.
type testCluster struct {
	folder, programs string
	ca               *authority
	control          []*process
	nodes            []*node
}

// startCluster starts the control plane and two nodes with some images, and waits until the nodes are ready.
func startCluster(folder, programs string, images []string) (*testCluster, error) {
	c := &testCluster{folder: folder, programs: programs}
	if err := enterCluster(); err != nil {
		return c, err
	}
	if err := c.issueCertificates(); err != nil {
		return c, err
	}
	if err := c.startControl(); err != nil {
		return c, err
	}
	for number := 1; number <= 2; number++ {
		n, err := startNode(number, folder, programs)
		if err != nil {
			return c, err
		}
		c.nodes = append(c.nodes, n)
	}
	if err := c.startContainerd(images); err != nil {
		return c, err
	}
	err := eventually(stepTimeout, func() error {
		_, err := c.kubectl("get", "--raw", "/readyz")
		return err
	})
	if err != nil {
		return c, err
	}
	for _, n := range c.nodes {
		if err := n.startKubelet(c.ca); err != nil {
			return c, err
		}
	}
	return c, eventually(stepTimeout, func() error {
		for _, n := range c.nodes {
			if _, err := c.kubectl("wait", "--for=condition=Ready", "--timeout=1s", "node/"+n.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// startContainerd starts the container runtimes of all nodes at the same time: each unpacks its images.
func (c *testCluster) startContainerd(images []string) error {
	faults := make([]error, len(c.nodes))
	var runtimes sync.WaitGroup
	for number, n := range c.nodes {
		runtimes.Go(func() { faults[number] = n.startContainerd(images...) })
	}
	runtimes.Wait()
	return errors.Join(faults...)
}

func (c *testCluster) issueCertificates() error {
	folder := filepath.Join(c.folder, "pki")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	var err error
	if c.ca, err = newAuthority(folder); err != nil {
		return err
	}
	type user struct {
		file, name string
		groups     []string
	}
	users := []user{
		{"admin", "admin", []string{"system:masters"}},
		{"scheduler", "system:kube-scheduler", nil},
		{"controller-manager", "system:kube-controller-manager", nil},
		{"node1", "system:node:node1", []string{"system:nodes"}},
		{"node2", "system:node:node2", []string{"system:nodes"}},
	}
	for _, u := range users {
		if err := errors.Join(c.ca.issue(u.file, u.name, u.groups), c.ca.kubeconfig(u.file, server)); err != nil {
			return err
		}
	}
	return errors.Join(c.ca.issue("apiserver", "kube-apiserver", nil, serviceAddress, clusterAddress, "127.0.0.1"),
		c.ca.issue("service-accounts", "service-accounts", nil))
}

// startControl starts etcd, the API server, the scheduler and the controller manager.
func (c *testCluster) startControl() error {
	pki, ca := c.ca.path, c.ca.path("ca.crt")
	programs := []struct {
		program   string
		arguments []string
	}{
		// Go names etcd's program by its module's folder.
		{"server", []string{"--data-dir=" + filepath.Join(c.folder, "etcd"), "--unsafe-no-fsync", "--log-level=warn"}},
		{"kube-apiserver", []string{"--etcd-servers=http://127.0.0.1:2379", "--secure-port=443", "--advertise-address=" + clusterAddress,
			"--service-cluster-ip-range=10.96.0.0/16", "--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--client-ca-file=" + ca, "--service-account-key-file=" + pki("service-accounts.key"),
			"--service-account-signing-key-file=" + pki("service-accounts.key"), "--service-account-issuer=https://kubernetes.default.svc",
			"--kubelet-preferred-address-types=InternalIP", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
			"--kubelet-client-certificate=" + pki("admin.crt"), "--kubelet-client-key=" + pki("admin.key")}},
		{"kube-controller-manager", []string{"--kubeconfig=" + pki("controller-manager.kubeconfig"), "--leader-elect=false",
			"--root-ca-file=" + ca, "--service-account-private-key-file=" + pki("service-accounts.key"), "--use-service-account-credentials=true"}},
		{"kube-scheduler", []string{"--kubeconfig=" + pki("scheduler.kubeconfig"), "--leader-elect=false"}},
	}
	for _, p := range programs {
		started, err := start(c.folder, p.program, exec.Command(filepath.Join(c.programs, p.program), p.arguments...))
		if err != nil {
			return err
		}
		c.control = append(c.control, started)
	}
	return nil
}

// administrate returns a program with the rights of the administrator. Its home, with its caches, is the cluster's folder.
func (c *testCluster) administrate(program string, arguments ...string) *exec.Cmd {
	words := append([]string{"--kubeconfig", c.ca.path("admin.kubeconfig")}, arguments...)
	command := exec.Command(filepath.Join(c.programs, program), words...)
	command.Env = append(os.Environ(), "HOME="+c.folder)
	return command
}

// kubectl runs kubectl as the administrator, and returns its output.
func (c *testCluster) kubectl(arguments ...string) (string, error) {
	return outputOf(c.administrate("kubectl", arguments...))
}

// apply creates or changes objects from a manifest.
func (c *testCluster) apply(manifest string, options ...string) error {
	command := c.administrate("kubectl", append([]string{"apply", "-f", "-"}, options...)...)
	command.Stdin = strings.NewReader(manifest)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, text)
	}
	return nil
}

// report returns the state of the cluster, for a failed test.
func (c *testCluster) report() string {
	var text strings.Builder
	if c.ca != nil {
		for _, arguments := range [][]string{{"get", "nodes,pods,resourceclaims", "-A", "-o", "wide"},
			{"get", "events", "-A", "-o", "jsonpath={range .items[*]}{.involvedObject.name}: {.message}{'\\n'}{end}"}} {
			part, err := c.kubectl(arguments...)
			fmt.Fprintf(&text, "== kubectl %s\n%s %v\n", strings.Join(arguments, " "), part, err)
		}
	}
	logs := map[string]string{}
	for _, p := range c.control {
		logs[p.name] = p.log
	}
	for _, n := range c.nodes {
		for _, p := range []*process{n.containerd, n.kubelet} {
			if p != nil {
				logs[n.name+" "+p.name] = p.log
			}
		}
		for _, log := range podLogs(n) {
			logs[strings.TrimPrefix(log, n.folder)] = log
		}
	}
	for name, log := range logs {
		fmt.Fprintf(&text, "== %s\n%s\n", name, tail(log, 12))
	}
	return text.String()
}

func podLogs(n *node) []string {
	logs, _ := filepath.Glob(filepath.Join(n.folder, "log/pods/softiov-system_*/*/*.log"))
	return logs
}
