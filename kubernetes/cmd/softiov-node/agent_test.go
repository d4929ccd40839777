package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"softiov.io/kubernetes/internal/dra"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
	"softiov.io/kubernetes/internal/policy"
)

// node is the name of the node under test.
const node = "node-1"

// testAgent is a whole agent, with kubelet's folders and an API server in memory.
type testAgent struct {
	t      *testing.T
	config *config
	kube   *fake.Clientset
	cancel context.CancelFunc
	ended  chan error
}

// newKube returns an API server in memory, with the node and some claims.
func newKube(claims ...*resourceapi.ResourceClaim) *fake.Clientset {
	objects := []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "node-uid"}}}
	for _, claim := range claims {
		objects = append(objects, claim)
	}
	kube := fake.NewClientset(objects...)
	// The server in memory does not give names, as a real one does.
	number := 0
	kube.PrependReactor("create", "resourceslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		slice := action.(clienttesting.CreateAction).GetObject().(*resourceapi.ResourceSlice)
		if slice.Name == "" {
			number++
			slice.Name = fmt.Sprintf("%s%d", slice.GenerateName, number)
		}
		return false, nil, nil
	})
	return kube
}

// startAgent starts an agent in a folder, with options that change from those of other tests. Claims have the VFs of all ports but pf2.
func startAgent(t *testing.T, folder string, kube *fake.Clientset, options ...func(*config)) *testAgent {
	t.Helper()
	a := &testAgent{t: t, kube: kube, config: &config{
		control: filepath.Join(folder, "rt/control/control.sock"), state: filepath.Join(folder, "as"), node: node, dra: true,
		devicePlugin: "pf2=softiov.io/virtio", plugins: filepath.Join(folder, "plugins"),
		registry: filepath.Join(folder, "registry"), devices: filepath.Join(folder, "devices"),
		cdi: filepath.Join(folder, "cdi"), interval: 50 * time.Millisecond,
	}}
	for _, change := range options {
		change(a.config)
	}
	if a.config.podResources == "" {
		a.config.podResources = podresourcestest.Serve(t)
	}
	a.start()
	t.Cleanup(a.stop)
	return a
}

func (a *testAgent) start() {
	a.t.Helper()
	agent, err := newAgent(a.config, a.kube)
	if err != nil {
		a.t.Fatal(err)
	}
	logger := ktesting.NewLogger(a.t, ktesting.NewConfig(ktesting.Verbosity(0)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	a.cancel = cancel
	a.ended = make(chan error, 1)
	go func() { a.ended <- agent.run(ctx) }()
}

// stop ends the agent, and waits for it.
func (a *testAgent) stop() {
	if a.cancel == nil {
		return
	}
	a.cancel()
	if err := <-a.ended; err != nil {
		a.t.Errorf("the agent ended with an error: %v", err)
	}
	a.cancel = nil
}

// claim returns an allocated claim for VFs, each for a request of its own (request-0, ...), with parameters for all.
func claim(name, parameters string, vfs ...string) *resourceapi.ResourceClaim {
	allocation := &resourceapi.AllocationResult{}
	for i, vf := range vfs {
		allocation.Devices.Results = append(allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: fmt.Sprintf("request-%d", i), Driver: dra.DriverName, Pool: node, Device: vf,
		})
	}
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")},
		Status: resourceapi.ResourceClaimStatus{
			Allocation:  allocation,
			ReservedFor: []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod", UID: "pod-uid"}},
		},
	}
	if parameters != "" {
		configure(claim, resourceapi.AllocationConfigSourceClaim, parameters)
	}
	return claim
}

// configure adds parameters of a class or claim to all requests of a claim.
func configure(claim *resourceapi.ResourceClaim, source resourceapi.AllocationConfigSource, parameters string) {
	raw := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, policy.APIVersion, policy.Kind, parameters)
	claim.Status.Allocation.Devices.Config = append(claim.Status.Allocation.Devices.Config,
		resourceapi.DeviceAllocationConfiguration{
			Source: source,
			DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
				Driver: dra.DriverName, Parameters: runtime.RawExtension{Raw: []byte(raw)},
			}},
		})
}

// add adds claims to the API server.
func (a *testAgent) add(claims ...*resourceapi.ResourceClaim) {
	a.t.Helper()
	for _, claim := range claims {
		if err := a.kube.Tracker().Add(claim); err != nil {
			a.t.Fatal(err)
		}
	}
}

// slices returns the ResourceSlices of the node.
func (a *testAgent) slices() []resourceapi.ResourceSlice {
	all, err := a.kube.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return all.Items
}

// offered returns the devices of the node's slices by name.
func (a *testAgent) offered() map[string]resourceapi.Device {
	devices := map[string]resourceapi.Device{}
	for _, slice := range a.slices() {
		for _, device := range slice.Spec.Devices {
			devices[device.Name] = device
		}
	}
	return devices
}
