// Package cni is a CNI plugin that names the VF of a pod's network: it reports the socket of a VF that the
// device plugin has given to the pod. It changes nothing, and has no policy of its own.
package cni

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/vfinfo"
)

const (
	// CommandVariable is the variable with the command. Only a CNI plugin's caller sets it.
	CommandVariable = "CNI_COMMAND"
	// deviceInfoVersion is the version of the device-info specification (Network Plumbing Working Group).
	deviceInfoVersion = "1.1.0"
)

// The plugin runs as root of the node, and a tenant may write a network's configuration. So it chooses neither the agent that
// is believed nor the folder that is written to. Tests change both.
var (
	// agentSocket is the socket of an agent with the default folder.
	agentSocket = filepath.Join(admin.StateFolder, admin.SocketName)
	// deviceInfoFolder is the folder in which Multus looks for descriptions of devices (device-info specification).
	deviceInfoFolder = "/var/run/k8s.cni.cncf.io/devinfo/cni"
)

// policyKeys are keys of sriov-cni. Here a policy is that of the claim or of the host.
var policyKeys = []string{"vlan", "vlanQoS", "vlanProto", "mac", "spoofchk", "trust", "link_state", "min_tx_rate", "max_tx_rate"}

// netConf is the configuration of a network.
type netConf struct {
	types.NetConf
	// DeviceID is the name of the VF, which Multus adds for a network with a resource.
	DeviceID      string `json:"deviceID"`
	RuntimeConfig struct {
		DeviceID string `json:"deviceID"`
		// DeviceInfoFile is the file in which Multus looks for a description of the device.
		DeviceInfoFile string `json:"CNIDeviceInfoFile"`
	} `json:"runtimeConfig"`
}

// Main answers one call, and returns the exit code.
func Main() int {
	functions := skel.CNIFuncs{Add: add, Check: check, Del: remove, GC: remove, Status: status}
	supported := version.PluginSupports("0.3.1", "0.4.0", "1.0.0", "1.1.0")
	if err := skel.PluginMainFuncsWithError(functions, supported, "softiov-cni: names the VF of a pod's network"); err != nil {
		// The error is the answer. If the runtime does not read it, the exit code remains.
		_ = err.Print()
		return 1
	}
	return 0
}

// Validate refuses a network's configuration as a call with it would.
func Validate(configuration []byte) error {
	_, err := parse(configuration)
	return err
}

// parse reads a configuration, and refuses what it cannot give.
func parse(text []byte) (*netConf, error) {
	invalid := func(format string, values ...any) error {
		return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf(format, values...), "")
	}
	var keys map[string]json.RawMessage
	conf := &netConf{}
	if err := errors.Join(json.Unmarshal(text, &keys), json.Unmarshal(text, conf)); err != nil {
		return nil, invalid("the network's configuration is invalid: %v", err)
	}
	for _, key := range policyKeys {
		if _, present := keys[key]; present {
			return nil, invalid("%s is not a key of softiov-cni; set it in the claim's parameters or in the host's configuration", key)
		}
	}
	if conf.IPAM.Type != "" {
		return nil, invalid("ipam is not supported: the guest has the address, not the pod; leave ipam out")
	}
	conf.DeviceID = cmp.Or(conf.DeviceID, conf.RuntimeConfig.DeviceID)
	if file := conf.RuntimeConfig.DeviceInfoFile; file != "" && filepath.Dir(file) != deviceInfoFolder {
		return nil, invalid("CNIDeviceInfoFile is %q, and must be a file in %s; declare the capability CNIDeviceInfoFile, and leave the file to Multus",
			file, deviceInfoFolder)
	}
	return conf, nil
}

// find returns the status of the network's VF.
func (c *netConf) find() (admin.VFStatus, error) {
	if c.DeviceID == "" {
		return admin.VFStatus{}, types.NewError(types.ErrInvalidNetworkConfig,
			"deviceID is missing; add the annotation k8s.v1.cni.cncf.io/resourceName to the NetworkAttachmentDefinition", "")
	}
	all, err := c.status()
	if err != nil {
		return admin.VFStatus{}, err
	}
	at := slices.IndexFunc(all, func(vf admin.VFStatus) bool { return vf.VF == c.DeviceID })
	if at < 0 {
		return admin.VFStatus{}, types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("the host has no VF %s: softiov-node status", c.DeviceID), "")
	}
	return all[at], nil
}

// status returns all VFs of the agent.
func (c *netConf) status() ([]admin.VFStatus, error) {
	all, err := admin.NewClient(agentSocket).Status()
	if err != nil {
		return nil, types.NewError(types.ErrTryAgainLater, err.Error(), "")
	}
	return all.VFs, nil
}

// requested returns a call's configuration and the status of its VF.
func requested(args *skel.CmdArgs) (*netConf, admin.VFStatus, error) {
	conf, err := parse(args.StdinData)
	if err != nil {
		return nil, admin.VFStatus{}, err
	}
	vf, err := conf.find()
	return conf, vf, err
}

// usable refuses a VF that no pod can have by the device plugin.
func usable(vf *admin.VFStatus) error {
	switch {
	case vf.Claim != "":
		return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("VF %s belongs to the claim %s", vf.VF, vf.Claim), "")
	case vf.Resource == "":
		return types.NewError(types.ErrInvalidNetworkConfig,
			fmt.Sprintf("VF %s is for claims, not for the device plugin: name its port in --device-plugin", vf.VF), "")
	case !vf.Healthy:
		return types.NewError(types.ErrTryAgainLater, fmt.Sprintf("VF %s is unhealthy: %s", vf.VF, vf.Reason), "")
	}
	return nil
}

// owned refuses a VF that the device plugin has not given to the call's pod. The network's author may have named it.
func owned(args *skel.CmdArgs, vf *admin.VFStatus) error {
	namespace, name := podOf(args.Args)
	if namespace == "" || name == "" {
		return types.NewError(types.ErrInvalidEnvironmentVariables,
			"CNI_ARGS has no K8S_POD_NAMESPACE and K8S_POD_NAME, which container runtimes of Kubernetes set", args.Args)
	}
	vfs, err := admin.NewClient(agentSocket).PodVFs(namespace, name)
	if err != nil {
		return types.NewError(types.ErrTryAgainLater, err.Error(), "")
	}
	if !slices.Contains(vfs, vf.VF) {
		return types.NewError(types.ErrInvalidNetworkConfig,
			fmt.Sprintf("VF %s does not belong to the pod %s/%s, which has the VFs %q; leave deviceID out, and request %s in the pod",
				vf.VF, namespace, name, vfs, vf.Resource), "")
	}
	return nil
}

// podOf returns namespace and name of the pod in CNI_ARGS, which only the container runtime and Multus set.
func podOf(args string) (namespace, name string) {
	for _, argument := range strings.Split(args, ";") {
		switch key, value, _ := strings.Cut(argument, "="); key {
		case "K8S_POD_NAMESPACE":
			namespace = value
		case "K8S_POD_NAME":
			name = value
		}
	}
	return namespace, name
}

// checkFile refuses the description of another network's device. Multus names the file of each network
// NETWORK-CONTAINER_INTERFACE (pkg/types/conf.go, version 4.3).
func (c *netConf) checkFile(args *skel.CmdArgs) error {
	file, end := c.RuntimeConfig.DeviceInfoFile, "-"+args.ContainerID+"_"+args.IfName
	if file == "" || strings.HasSuffix(file, end) {
		return nil
	}
	return types.NewError(types.ErrInvalidNetworkConfig,
		fmt.Sprintf("CNIDeviceInfoFile is %q, and must end in %q; declare the capability CNIDeviceInfoFile, and leave the file to Multus", file, end), "")
}

// previous returns the result of the previous plugin in a list of plugins, or of an earlier call. It is empty if there is none.
func (c *netConf) previous() (*current.Result, error) {
	if err := version.ParsePrevResult(&c.NetConf); err != nil {
		return nil, types.NewError(types.ErrInvalidNetworkConfig, err.Error(), "")
	}
	if c.PrevResult == nil {
		return &current.Result{CNIVersion: c.CNIVersion}, nil
	}
	return current.GetResult(c.PrevResult)
}

// add reports the VF's socket as an interface of the pod.
func add(args *skel.CmdArgs) error {
	conf, vf, err := requested(args)
	if err != nil {
		return err
	}
	if err := usable(&vf); err != nil {
		return err
	}
	if err := owned(args, &vf); err != nil {
		return err
	}
	if err := conf.checkFile(args); err != nil {
		return err
	}
	// Behind another plugin in a list, the result is that of both.
	result, err := conf.previous()
	if err != nil {
		return err
	}
	info := vf.Info
	if err := writeDeviceInfo(conf.RuntimeConfig.DeviceInfoFile, info); err != nil {
		return err
	}
	result.Interfaces = append(result.Interfaces,
		&current.Interface{Name: args.IfName, Mac: info.MAC, Sandbox: args.Netns, SocketPath: info.Socket})
	return types.PrintResult(result, conf.CNIVersion)
}

// check compares the result of add with the VF as it is now.
func check(args *skel.CmdArgs) error {
	conf, vf, err := requested(args)
	if err != nil {
		return err
	}
	previous, err := conf.previous()
	if err != nil {
		return err
	}
	// Results before version 1.1 have no socket.
	for _, one := range previous.Interfaces {
		if one.Name == args.IfName && (one.SocketPath == "" || one.SocketPath == vf.Info.Socket) && strings.EqualFold(one.Mac, vf.Info.MAC) {
			return nil
		}
	}
	return types.NewError(types.ErrInternal, fmt.Sprintf("the result has no interface %s with VF %s", args.IfName, conf.DeviceID), "")
}

// remove succeeds: add has changed nothing, and a pod must be able to end while the agent is away.
func remove(*skel.CmdArgs) error { return nil }

// status reports whether the agent answers.
func status(args *skel.CmdArgs) error {
	conf, err := parse(args.StdinData)
	if err != nil {
		return err
	}
	if _, err := conf.status(); err != nil {
		// The specification has this number for a plugin that cannot serve ADD now.
		return types.NewError(types.ErrPluginNotAvailable, err.Error(), "")
	}
	return nil
}

// writeDeviceInfo describes a virtio VF in a file for Multus. The specification has no type for sockets of vfio-user.
func writeDeviceInfo(path string, info vfinfo.Info) error {
	if path == "" || info.Protocol != vfinfo.VhostUser {
		return nil
	}
	// The mode is that of the VMM.
	socket := map[string]string{"mode": "client", "path": info.Socket}
	content, err := json.Marshal(map[string]any{
		"type": vfinfo.VhostUser, "version": deviceInfoVersion, vfinfo.VhostUser: socket,
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create the folder of device descriptions: %w", err)
	}
	// Another process may read the file meanwhile, and a link in its place must not be followed.
	if err := files.Write(path, content, 0o644); err != nil {
		return fmt.Errorf("describe the device: %w", err)
	}
	return nil
}
