package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"softiov.io/kubernetes/internal/inventory"
)

const (
	// lookInterval is the time between two looks at kubelet's folder.
	lookInterval = 500 * time.Millisecond
	// retryInterval is the time until the next attempt after a failed registration.
	retryInterval = time.Second
	// registerTimeout bounds one registration.
	registerTimeout = 10 * time.Second
)

// Plugin is the device plugin of one resource.
type Plugin struct {
	// Resource is the name of the extended resource, such as softiov.io/vf.
	Resource string
	// Folder is kubelet's folder of device plugins.
	Folder string
	// Owns reports whether a port's VFs belong to the resource.
	Owns    func(port string) bool
	Watcher *inventory.Watcher
}

// Run offers the resource until the context ends. Kubelet forgets its plugins and removes their sockets when it
// restarts, so the plugin serves and registers again after each of its restarts.
func (p *Plugin) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	var last string
	for ctx.Err() == nil {
		reason, err := p.serve(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			last = ""
			logger.Info("Registering again", "resource", p.Resource, "reason", reason)
		case err.Error() != last:
			// Kubelet may be away for long; one line is enough.
			last = err.Error()
			logger.Info("Could not register; trying again every second", "resource", p.Resource, "reason", err)
		}
		pause := retryInterval
		if err == nil {
			pause = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// socket returns the path of the plugin's socket.
func (p *Plugin) socket() string {
	return filepath.Join(p.Folder, strings.NewReplacer("/", "_").Replace(p.Resource)+".sock")
}

// serve listens, registers, and returns the reason why the plugin has to do so again.
func (p *Plugin) serve(ctx context.Context) (string, error) {
	kubelet := filepath.Join(p.Folder, filepath.Base(api.KubeletSocket))
	// The socket's identity is taken before the registration: a kubelet that restarts meanwhile has another.
	before, err := identity(kubelet)
	if err != nil {
		return "", fmt.Errorf("kubelet's socket is missing: %w", err)
	}
	path := p.socket()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return "", fmt.Errorf("listen in kubelet's folder: %w", err)
	}
	own, err := identity(path)
	if err != nil {
		listener.Close()
		return "", err
	}
	ended := make(chan struct{}, 1)
	service := grpc.NewServer()
	api.RegisterDevicePluginServer(service, &server{resource: p.Resource, watcher: p.Watcher, owns: p.Owns, ended: ended})
	go func() { _ = service.Serve(listener) }() // Stop ends it.
	defer service.Stop()
	if err := p.register(ctx, kubelet, filepath.Base(path)); err != nil {
		return "", err
	}
	klog.FromContext(ctx).Info("Registered", "resource", p.Resource)
	for {
		select {
		case <-ctx.Done():
			return "", nil
		case <-ended:
			return "kubelet has closed its connection", nil
		case <-time.After(lookInterval):
		}
		if now, err := identity(path); err != nil || now != own {
			return "the plugin's socket is gone", nil
		}
		if now, err := identity(kubelet); err == nil && now != before {
			return "kubelet has restarted", nil
		}
	}
}

// register reports the plugin's socket and resource to kubelet.
func (p *Plugin) register(ctx context.Context, kubelet, endpoint string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = api.NewRegistrationClient(connection).Register(ctx, &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: p.Resource,
		Options: &api.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	if err != nil {
		return fmt.Errorf("kubelet refuses the resource %s: %w", p.Resource, err)
	}
	return nil
}

// fileID is the identity of a file. The kernel gives the inode of a removed file to the next one, so the time of the last
// change of the inode is part of it.
type fileID struct {
	device, inode uint64
	changed       syscall.Timespec
}

// identity returns the identity of a socket file.
func identity(path string) (fileID, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return fileID{}, err
	}
	status, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, fmt.Errorf("%s has no inode", path)
	}
	return fileID{device: uint64(status.Dev), inode: status.Ino, changed: status.Ctim}, nil
}
