package dra

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"softiov.io/kubernetes/internal/cdifiles"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
	"softiov.io/kubernetes/internal/inventory"
)

// bench is a driver with a host in memory. Nothing runs but what the test calls.
type bench struct {
	*Driver
	t      *testing.T
	host   *hosttest.Host
	folder string
}

// newBench returns a driver with claims in its API server.
func newBench(t *testing.T, vfs []string, all ...*resourceapi.ResourceClaim) *bench {
	t.Helper()
	b := &bench{t: t, host: hosttest.New(t, vfs...), folder: t.TempDir()}
	var objects []runtime.Object
	for _, claim := range all {
		objects = append(objects, claim)
	}
	store, err := claims.OpenStore(b.folder)
	if err != nil {
		t.Fatal(err)
	}
	files, err := cdifiles.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.Driver = New(Config{
		Node: "node-1", Host: b.host.Client, Store: store, Files: files, Kube: fake.NewClientset(objects...),
		Watcher: inventory.NewWatcher(b.host.Client, time.Hour, func() []string { return nil }),
		Owns:    func(string) bool { return true }, Stop: func(err error) { t.Error(err) },
	})
	return b
}

// prepareAll prepares claims in one call, and returns the error of each.
func (b *bench) prepareAll(all ...*resourceapi.ResourceClaim) map[types.UID]error {
	b.t.Helper()
	results, err := b.PrepareResourceClaims(context.Background(), all)
	faults := map[types.UID]error{}
	for _, claim := range all {
		faults[claim.UID] = errors.Join(err, results[claim.UID].Err)
	}
	return faults
}

// prepareOne prepares one claim.
func (b *bench) prepareOne(claim *resourceapi.ResourceClaim) error {
	b.t.Helper()
	return b.prepareAll(claim)[claim.UID]
}

// mustPrepare prepares a claim that has to succeed.
func (b *bench) mustPrepare(claim *resourceapi.ResourceClaim) {
	b.t.Helper()
	if err := b.prepareOne(claim); err != nil {
		b.t.Fatal(err)
	}
}

// unprepare ends claims, and returns the joined errors.
func (b *bench) unprepare(all ...*resourceapi.ResourceClaim) error {
	b.t.Helper()
	var objects []kubeletplugin.NamespacedObject
	for _, claim := range all {
		name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
		objects = append(objects, kubeletplugin.NamespacedObject{NamespacedName: name, UID: claim.UID})
	}
	results, err := b.UnprepareResourceClaims(context.Background(), objects)
	for _, fault := range results {
		err = errors.Join(err, fault)
	}
	return err
}

// repair makes one comparison of records and host.
func (b *bench) repair() {
	b.t.Helper()
	if err := b.Repair(context.Background()); err != nil {
		b.t.Fatal(err)
	}
}

// expect compares a setting of a VF and its origin.
func (b *bench) expect(vf, name, want string) {
	b.t.Helper()
	if got := b.host.Setting(vf, name); got != want {
		b.t.Errorf("%s of %s is %q, want %q", name, vf, got, want)
	}
}

// record returns the record of a claim, or nil.
func (b *bench) record(claim *resourceapi.ResourceClaim) *claims.Record {
	b.t.Helper()
	record, err := b.store.Get(string(claim.UID))
	if err != nil {
		b.t.Fatal(err)
	}
	return record
}

// newClaim returns a claim in use, with parameters for its VFs.
func newClaim(name, parameters string, vfs ...string) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name + "-uid")}}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod", UID: "pod-uid"}}
	allocate(claim, parameters, vfs...)
	return claim
}

// allocate gives a claim other VFs and parameters.
func allocate(claim *resourceapi.ResourceClaim, parameters string, vfs ...string) {
	allocation := &resourceapi.AllocationResult{}
	for _, vf := range vfs {
		allocation.Devices.Results = append(allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "nic-" + vf, Driver: DriverName, Pool: "node-1", Device: vf})
	}
	if parameters != "" {
		raw := `{"apiVersion":"vf.softiov.io/v1alpha1","kind":"VfPolicy",` + parameters + `}`
		opaque := &resourceapi.OpaqueDeviceConfiguration{Driver: DriverName, Parameters: runtime.RawExtension{Raw: []byte(raw)}}
		allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{{
			Source: resourceapi.AllocationConfigSourceClaim, DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: opaque},
		}}
	}
	claim.Status.Allocation = allocation
}

// A claim counts settings that are in force already as the administrator's. In an old answer they may be those of a claim
// that has ended since, and its successor would be without its VLAN.
func TestClaimIsNotAdmittedByAnOldAnswer(t *testing.T) {
	b := newBench(t, []string{"pf0vf0"})
	first, next := newClaim("first", `"vlan":100`, "pf0vf0"), newClaim("next", `"vlan":100`, "pf0vf0")
	b.mustPrepare(first)
	b.expect("pf0vf0", "vlan", "100 kept")
	if err := b.unprepare(first); err != nil {
		t.Fatal(err)
	}
	// The host dies before the watcher has seen that the VLAN went back.
	b.host.Refuse(hosttest.Away)
	if err := b.prepareOne(next); err == nil || !strings.Contains(err.Error(), "kubelet tries again") {
		t.Errorf("the claim is admitted without the host: %v", err)
	}
	b.host.Refuse(nil)
	b.mustPrepare(next)
	b.expect("pf0vf0", "vlan", "100 kept")
}

// A VMM may connect after the last answer. A claim that looks as if it had ended is then in use.
func TestRebuiltClaimIsNotGoneByAnOldAnswer(t *testing.T) {
	claim := newClaim("first", `"vlan":100`, "pf0vf0")
	b := newBench(t, []string{"pf0vf0"}, claim)
	b.host.Set("pf0vf0", "vlan", "100", "kept")
	b.repair()
	if record := b.record(claim); record == nil || !record.Derived {
		t.Fatalf("the record is not rebuilt: %+v", record)
	}
	if err := b.kube.ResourceV1().ResourceClaims("default").Delete(context.Background(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.host.Edit("pf0vf0", func(vf *host.VF) { vf.Peer = &host.Peer{PID: 7, UID: 107} })
	b.repair()
	if record := b.record(claim); record == nil || record.Released {
		t.Errorf("the claim of a running VMM is released: %+v", record)
	}
	b.host.Edit("pf0vf0", func(vf *host.VF) { vf.Peer = nil })
	b.repair()
	if record := b.record(claim); record != nil {
		t.Errorf("the ended claim is still there: %+v", record)
	}
	b.expect("pf0vf0", "vlan", "0")
}

// A claim without a template outlives its pod. Kubelet releases the earlier allocation, unless it has lost its own state.
func TestClaimThatIsAllocatedAgainGetsItsNewVF(t *testing.T) {
	b, claim := newBench(t, []string{"pf0vf0", "pf0vf1"}), newClaim("nic", `"vlan":100`, "pf0vf0")
	b.mustPrepare(claim)
	allocate(claim, `"vlan":20`, "pf0vf1")
	b.mustPrepare(claim)
	if record := b.record(claim); record == nil || len(record.Devices) != 1 || record.Devices[0].VF != "pf0vf1" {
		t.Fatalf("%+v", record)
	}
	b.expect("pf0vf0", "vlan", "0")
	b.expect("pf0vf1", "vlan", "20 kept")
	// The same VF with another policy, or without one, is another allocation too.
	allocate(claim, `"vlan":30`, "pf0vf1")
	b.mustPrepare(claim)
	b.expect("pf0vf1", "vlan", "30 kept")
	allocate(claim, "", "pf0vf1")
	b.mustPrepare(claim)
	b.expect("pf0vf1", "vlan", "0")
	allocate(claim, `"vlan":20`, "pf0vf1")
	b.mustPrepare(claim)
	b.expect("pf0vf1", "vlan", "20 kept")
}

// The host and a VMM in another pod have different PID namespaces, and the kernel gives the host no number.
func TestClientOfAnotherContainerHasNoNumber(t *testing.T) {
	b, claim := newBench(t, []string{"pf0vf0"}), newClaim("nic", "", "pf0vf0")
	for pid, want := range map[int]string{
		0: "VF pf0vf0 is in use by a process of user 107 in another container, which", 7: "VF pf0vf0 is in use by process 7 of user 107, which",
	} {
		b.host.Edit("pf0vf0", func(vf *host.VF) { vf.Peer = &host.Peer{PID: pid, UID: 107} })
		if err := b.prepareOne(claim); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

// Reported for dra-driver-nvidia-gpu (#754): a second prepare takes a claim back to an earlier state.
func TestSecondPrepareDoesNotDisturbARunningClaim(t *testing.T) {
	b, claim := newBench(t, []string{"pf0vf0"}), newClaim("nic", `"vlan":100`, "pf0vf0")
	b.mustPrepare(claim)
	b.host.Edit("pf0vf0", func(vf *host.VF) { vf.Peer = &host.Peer{PID: 7, UID: 107} })
	b.host.Requests()
	b.mustPrepare(claim)
	if requests := b.host.Requests(); len(requests) != 1 || requests[0] != "GET pf0vf0" {
		t.Errorf("%v", requests)
	}
}

// Reported for dra-driver-nvidia-gpu (#1162): a prepare that kubelet has given up waits for its turn, and succeeds after
// the unprepare of the same claim. Kubelet does not release the device then.
func TestPrepareThatKubeletHasGivenUpChangesNothing(t *testing.T) {
	b, claim := newBench(t, []string{"pf0vf0"}), newClaim("nic", "", "pf0vf0")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	results, err := b.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{claim})
	if err == nil && results[claim.UID].Err == nil {
		t.Error("the prepare succeeds")
	}
	if record := b.record(claim); record != nil {
		t.Errorf("the claim has a record: %v", record)
	}
	b.mustPrepare(claim)
}
