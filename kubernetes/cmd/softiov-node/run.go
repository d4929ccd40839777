package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	metadata "k8s.io/dynamic-resource-allocation/api/metadata/v1beta1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/cdifiles"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/deviceplugin"
	"softiov.io/kubernetes/internal/dra"
	"softiov.io/kubernetes/internal/drain"
	"softiov.io/kubernetes/internal/features"
	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/hostprogram"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/metrics"
	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/policy"
)

// holdersPeriod is the number of requests to the host for each request to kubelet, whose answer has all pods of the node.
const holdersPeriod = 10

// run runs the agent until the context ends or a part of it fails.
func run(ctx context.Context, config *config) error {
	var kube kubernetes.Interface
	if config.dra {
		access, err := clientcmd.BuildConfigFromFlags("", config.kubeconfig)
		if err != nil {
			return fmt.Errorf("no access to the API server: %w; outside of a pod, use --kubeconfig", err)
		}
		if kube, err = kubernetes.NewForConfig(access); err != nil {
			return err
		}
	}
	agent, err := newAgent(config, kube)
	if err != nil {
		return err
	}
	return agent.run(ctx)
}

// agent is the parts of a running agent.
type agent struct {
	config    *config
	resources map[string]string
	kube      kubernetes.Interface
	rules     policy.Rules
	host      *host.Client
	drained   *drain.Set
	store     *claims.Store
	pods      *podresources.Client
	watcher   *inventory.Watcher
}

// newAgent checks the options and opens what is on the disk.
func newAgent(config *config, kube kubernetes.Interface) (*agent, error) {
	resources, err := config.resources()
	if err != nil {
		return nil, err
	}
	if err := config.check(resources); err != nil {
		return nil, err
	}
	rules, err := policy.NewRules(list(config.claimsMay))
	if err != nil {
		return nil, fmt.Errorf("--claims-may: %w", err)
	}
	store, err := claims.OpenStore(filepath.Join(config.state, "claims"))
	if err != nil {
		return nil, err
	}
	drained, err := drain.Open(filepath.Join(config.state, "drained.json"))
	if err != nil {
		return nil, err
	}
	pods := podresources.NewClient(config.podResources)
	vfHolders, err := holders.Open(filepath.Join(config.state, "resources.json"), store, pods, slices.Collect(maps.Values(resources)))
	if err != nil {
		return nil, err
	}
	vfHolders.Rebuilds = config.dra
	client := host.NewClient(config.control)
	watcher := inventory.NewWatcher(client, config.interval, drained.Names)
	watcher.Holders, watcher.ResourceOf = vfHolders, func(port string) string { return resourceOf(resources, port) }
	return &agent{
		config: config, resources: resources, kube: kube, rules: rules, host: client, drained: drained, store: store, pods: pods,
		watcher: watcher,
	}, nil
}

// run starts all parts, and waits for their end.
func (a *agent) run(parent context.Context) error {
	var parts sync.WaitGroup
	defer parts.Wait()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	start := func(part func(context.Context) error) {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				cancel(err)
			}
		})
	}
	for _, damage := range a.store.Damaged {
		klog.FromContext(ctx).Error(damage, "Set a damaged record aside; it is rebuilt from the API if its claim is in use")
	}
	start(func(ctx context.Context) error { a.watcher.Run(ctx); return nil })
	start(func(ctx context.Context) error {
		a.watcher.Holders.Run(ctx, holdersPeriod*a.config.interval)
		return nil
	})
	for _, resource := range slices.Sorted(maps.Keys(invert(a.resources))) {
		plugin := &deviceplugin.Plugin{
			Resource: resource, Folder: a.config.devices, Watcher: a.watcher,
			Owns: func(port string) bool { return resourceOf(a.resources, port) == resource },
		}
		start(func(ctx context.Context) error { plugin.Run(ctx); return nil })
	}
	server := &admin.Server{Watcher: a.watcher, Drained: a.drained, Store: a.store, Pods: a.pods}
	if a.config.dra {
		driver, stop, err := a.startDriver(ctx, cancel, start)
		if err != nil {
			return err
		}
		defer stop()
		server.Releaser = driver
	}
	start(func(ctx context.Context) error {
		return server.Serve(ctx, filepath.Join(a.config.state, admin.SocketName))
	})
	if err := a.startOptional(server, start); err != nil {
		return err
	}
	<-ctx.Done()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// startOptional starts the parts that options ask for: the update of the host's program, metrics, and labels of the node.
func (a *agent) startOptional(server *admin.Server, start func(func(context.Context) error)) error {
	var outdated func() error
	if a.config.hostProgramFolder != "" {
		updater := hostprogram.NewUpdater(a.config.hostProgram, a.config.hostProgramFolder, a.host)
		outdated = updater.Outdated
		start(func(ctx context.Context) error { updater.Run(ctx); return nil })
	}
	if a.config.listen != "" {
		listener, err := net.Listen("tcp", a.config.listen)
		if err != nil {
			return fmt.Errorf("--listen: %w", err)
		}
		metrics := &metrics.Server{Host: a.host, Watcher: a.watcher, Admin: server, Outdated: outdated}
		start(func(ctx context.Context) error { return metrics.Serve(ctx, listener) })
	}
	if a.config.features != "" {
		writer := &features.Writer{Folder: a.config.features, Watcher: a.watcher, Version: a.config.release}
		start(writer.Run)
	}
	return nil
}

// startDriver starts the DRA driver. Kubelet finds its registration socket at any time, also after a restart.
func (a *agent) startDriver(ctx context.Context, fail func(error), start func(func(context.Context) error)) (*dra.Driver, func(), error) {
	files, err := cdifiles.Open(a.config.cdi)
	if err != nil {
		return nil, nil, err
	}
	driver := dra.New(dra.Config{
		Node: a.config.node, Host: a.host, Watcher: a.watcher, Store: a.store, Files: files, Rules: a.rules, Kube: a.kube,
		Owns: func(port string) bool { return resourceOf(a.resources, port) == "" }, Stop: fail,
	})
	folder := filepath.Join(a.config.plugins, dra.DriverName)
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, nil, fmt.Errorf("create the driver's folder: %w", err)
	}
	options := []kubeletplugin.Option{
		kubeletplugin.DriverName(dra.DriverName), kubeletplugin.NodeName(a.config.node), kubeletplugin.KubeClient(a.kube),
		kubeletplugin.RegistrarDirectoryPath(a.config.registry), kubeletplugin.PluginDataDirectoryPath(folder),
	}
	if a.config.metadata {
		options = append(options, kubeletplugin.CDIDirectory(a.config.cdi),
			kubeletplugin.EnableDeviceMetadata(true, []schema.GroupVersion{metadata.SchemeGroupVersion}))
	}
	helper, err := kubeletplugin.Start(ctx, driver, options...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the DRA driver: %w", err)
	}
	start(func(ctx context.Context) error { driver.Publish(ctx, helper); return nil })
	start(func(ctx context.Context) error { driver.Run(ctx); return nil })
	return driver, helper.Stop, nil
}

// invert returns the ports of each resource.
func invert(resources map[string]string) map[string][]string {
	ports := map[string][]string{}
	for port, resource := range resources {
		ports[resource] = append(ports[resource], port)
	}
	return ports
}
