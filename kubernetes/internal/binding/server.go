// Package binding is a network binding plugin of KubeVirt: a sidecar that adds VFs to the domain of a virtual machine.
package binding

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/vfinfo"
)

const (
	// SocketFolder is the folder in which KubeVirt looks for sockets of sidecars.
	SocketFolder = "/var/run/kubevirt-hooks"
	// NetworkInfo is the file with what CNI plugins report of a pod's networks. KubeVirt mounts it into sidecars of
	// binding plugins with downwardAPI: device-info.
	NetworkInfo = "/etc/podinfo/network-info"
	// NameVariable is the variable with the name under which the plugin is registered (KubeVirt 1.9 or later).
	NameVariable = "NETWORK_BINDING_PLUGIN_NAME"
	// DefaultName is the name for an earlier KubeVirt.
	DefaultName = "softiov"
	// socketName is the file of the sidecar's socket.
	socketName = "softiov.sock"
	// stopTimeout is the time after which the sidecar ends in spite of open connections. Kubelet waits for it.
	stopTimeout = 3 * time.Second
)

// Sidecar answers virt-launcher.
type Sidecar struct {
	// Name is the name under which the plugin is registered in KubeVirt.
	Name string
	// Environment has the variables of the container in the form NAME=VALUE.
	Environment []string
	// NetworkInfo is the path of the file with what CNI plugins report; only networks without a claim need it.
	NetworkInfo string
	// pause waits before a further attempt to read an empty NetworkInfo. It returns false after the last one. Tests set it.
	pause func(attempt int) bool
}

// Serve answers virt-launcher on a socket in the folder, until the context or the virtual machine ends.
func (s *Sidecar) Serve(ctx context.Context, folder string) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	path := filepath.Join(folder, socketName)
	// A sidecar that restarts finds the socket of the one before.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen for virt-launcher: %w; this command runs as a sidecar of KubeVirt", err)
	}
	// The server's end waits for the first word of each connection.
	server := grpc.NewServer(grpc.ConnectionTimeout(stopTimeout))
	server.RegisterService(service(infoPackage, "Info", infoMessages, map[string]call{"Info": s.info}), nil)
	server.RegisterService(service(callbacksPackage, "Callbacks", callbackMessages, map[string]call{
		"OnDefineDomain": s.onDefineDomain, "PreCloudInitIso": preCloudInitIso,
		"Shutdown": func(context.Context, *dynamicpb.Message) (*dynamicpb.Message, error) {
			end()
			return newMessage(callbackMessages, "ShutdownResult"), nil
		},
	}), nil)
	stop := context.AfterFunc(ctx, func() {
		// The answer to Shutdown still goes out. A client that keeps its connection is cut off.
		timer := time.AfterFunc(stopTimeout, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	})
	defer stop()
	klog.FromContext(ctx).Info("Waiting for virt-launcher", "socket", path, "binding", s.Name)
	return server.Serve(listener)
}

// info returns the hooks that the sidecar implements.
func (s *Sidecar) info(context.Context, *dynamicpb.Message) (*dynamicpb.Message, error) {
	result := newMessage(infoMessages, "InfoResult")
	set(result, "name", protoreflect.ValueOfString("softiov"))
	fields := result.Descriptor().Fields()
	result.Mutable(fields.ByName("versions")).List().Append(protoreflect.ValueOfString(hooksVersion))
	points := result.Mutable(fields.ByName("hookPoints")).List()
	for _, name := range []string{"OnDefineDomain", "Shutdown"} {
		point := newMessage(infoMessages, "HookPoint")
		set(point, "name", protoreflect.ValueOfString(name))
		points.Append(protoreflect.ValueOfMessage(point))
	}
	return result, nil
}

// onDefineDomain adds the VFs to the domain's XML.
func (s *Sidecar) onDefineDomain(ctx context.Context, params *dynamicpb.Message) (*dynamicpb.Message, error) {
	domain, err := s.Define(bytesOf(params, "domainXML"), bytesOf(params, "vmi"))
	if err != nil {
		// The caller logs only the error's text.
		err = fmt.Errorf("binding %s: %w", s.Name, err)
		klog.FromContext(ctx).Error(err, "Could not add VFs to the domain")
		return nil, err
	}
	result := newMessage(callbackMessages, "OnDefineDomainResult")
	set(result, "domainXML", protoreflect.ValueOfBytes(domain))
	return result, nil
}

// Define returns the domain's XML with the VFs of the virtual machine.
func (s *Sidecar) Define(domainXML, vmiJSON []byte) ([]byte, error) {
	vmi, err := parseVMI(vmiJSON)
	if err != nil {
		return nil, err
	}
	interfaces := vmi.bound(s.Name)
	if len(interfaces) == 0 {
		return nil, fmt.Errorf("the virtual machine has no interface with this binding; KubeVirt's configuration registers "+
			"the plugin under another name than %s", s.Name)
	}
	vfs, err := vfinfo.FromEnvironment(s.Environment)
	if err != nil {
		return nil, err
	}
	attachments := make([]attachment, 0, len(interfaces))
	for _, one := range interfaces {
		attachment, err := s.attach(vmi, one, vfs)
		if err != nil {
			return nil, fmt.Errorf("interface %s: %w", one.Name, err)
		}
		attachments = append(attachments, attachment)
	}
	return addVFs(domainXML, attachments)
}

// preCloudInitIso returns the data unchanged. The sidecar does not subscribe to this hook.
func preCloudInitIso(_ context.Context, params *dynamicpb.Message) (*dynamicpb.Message, error) {
	result := newMessage(callbackMessages, "PreCloudInitIsoResult")
	for _, name := range []protoreflect.Name{"cloudInitNoCloudSource", "cloudInitData"} {
		set(result, name, protoreflect.ValueOfBytes(bytesOf(params, name)))
	}
	return result, nil
}
