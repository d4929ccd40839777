package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/binding"
	"softiov.io/kubernetes/internal/cdifiles"
	"softiov.io/kubernetes/internal/features"
	"softiov.io/kubernetes/internal/podresources"
)

// defaultResource is the extended resource of ports without a name of their own.
const defaultResource = "softiov.io/vf"

// config is the agent's options.
type config struct {
	control, state, node, kubeconfig string
	devicePlugin, claimsMay          string
	plugins, registry, devices, cdi  string
	listen, podResources             string
	hostProgram, hostProgramFolder   string
	features, release                string
	hooks, networkInfo               string
	interval                         time.Duration
	dra, metadata                    bool
}

// flags defines the options.
func flags(set *flag.FlagSet) *config {
	c := &config{}
	set.StringVar(&c.control, "control", "/run/softiov/control/control.sock", "control socket of the host")
	set.StringVar(&c.state, "state", admin.StateFolder, "folder for what must outlive the agent")
	set.StringVar(&c.node, "node", os.Getenv("NODE_NAME"), "name of this node; default: the variable NODE_NAME")
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "file with access to the API server; default: that of the pod")
	set.BoolVar(&c.dra, "dra", true, "offer VFs to claims, except those of --device-plugin")
	set.StringVar(&c.devicePlugin, "device-plugin", "",
		"ports whose VFs are an extended resource instead: PORT[=RESOURCE],...; * for all; default resource: "+defaultResource)
	set.StringVar(&c.claimsMay, "claims-may", "", "privileged parameters that claims may set, not only device classes: trust,spoofchk")
	set.BoolVar(&c.metadata, "metadata", false, "give containers a file with the attributes of each VF (Kubernetes 1.36 or later)")
	set.StringVar(&c.plugins, "plugins-dir", kubeletplugin.KubeletPluginsDir, "kubelet's folder of plugins")
	set.StringVar(&c.registry, "registry-dir", kubeletplugin.KubeletRegistryDir, "kubelet's folder of registrations")
	set.StringVar(&c.devices, "device-plugins-dir", strings.TrimSuffix(api.DevicePluginPath, "/"), "kubelet's folder of device plugins")
	set.StringVar(&c.podResources, "pod-resources", podresources.Socket, "kubelet's socket with the devices of pods")
	set.StringVar(&c.cdi, "cdi-dir", cdifiles.Folder, "folder in which the container runtime looks for CDI files")
	set.StringVar(&c.listen, "listen", "", "address of /metrics, /healthz and /readyz, such as :9808; default: none")
	set.StringVar(&c.features, "features-dir", "",
		"folder in which Node Feature Discovery looks for features, such as "+features.Folder+"; default: no labels")
	set.StringVar(&c.hostProgram, "host-program", "/softiov", "the host's program, for --host-program-dir and install-host")
	set.StringVar(&c.hostProgramFolder, "host-program-dir", "",
		"folder from which the keeper starts hosts: install the program there, and have a running host replaced by it; default: do not")
	set.StringVar(&c.release, "release", "", "version of this installation, for the labels of --features-dir")
	set.StringVar(&c.hooks, "hooks-dir", binding.SocketFolder, "binding: folder in which KubeVirt looks for sockets of sidecars")
	set.StringVar(&c.networkInfo, "network-info", binding.NetworkInfo, "binding: file with what CNI plugins report of networks")
	set.DurationVar(&c.interval, "interval", time.Second, "time between two requests to the host")
	return c
}

// portForm is the form of a port's name, and resourceForm that of an extended resource.
var (
	portForm     = regexp.MustCompile(`^([A-Za-z0-9_-]+|\*)$`)
	resourceForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// resources reads --device-plugin: the resource of each port.
func (c *config) resources() (map[string]string, error) {
	resources := map[string]string{}
	for _, item := range list(c.devicePlugin) {
		port, resource, named := strings.Cut(item, "=")
		if !named {
			resource = defaultResource
		}
		if !portForm.MatchString(port) || !resourceForm.MatchString(resource) {
			return nil, fmt.Errorf("--device-plugin: %q is not PORT or PORT=DOMAIN/NAME", item)
		}
		if _, twice := resources[port]; twice {
			return nil, fmt.Errorf("--device-plugin: port %s is named twice; a VF has one resource", port)
		}
		resources[port] = resource
	}
	return resources, nil
}

// resourceOf returns the resource of a port's VFs, or "" if they are for claims. A port has never both: kubelet and
// scheduler would give the same VF to two pods.
func resourceOf(resources map[string]string, port string) string {
	if resource, named := resources[port]; named {
		return resource
	}
	return resources["*"]
}

// check refuses options that cannot work together.
func (c *config) check(resources map[string]string) error {
	switch {
	case c.dra && c.node == "":
		return fmt.Errorf("--node is missing; the DaemonSet sets the variable NODE_NAME from spec.nodeName")
	case !c.dra && len(resources) == 0:
		return fmt.Errorf("--dra=false without --device-plugin offers nothing; name ports, or * for all")
	}
	return nil
}

// list splits a list at commas, and leaves out empty items.
func list(text string) []string {
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return slices.DeleteFunc(items, func(item string) bool { return item == "" })
}
