package dra

import (
	"context"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"softiov.io/kubernetes/internal/cdifiles"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
	"softiov.io/kubernetes/internal/inventory"
)

// Reported for dra-driver-nvidia-gpu (#1162): a prepare that kubelet has given up waits for its turn, and succeeds after
// the unprepare of the same claim. Nobody releases the device then.
func TestPrepareThatKubeletHasGivenUpChangesNothing(t *testing.T) {
	client := hosttest.Start(t, func() []host.Port { return []host.Port{hosttest.Port("pf0", "82576", "pf0vf0")} })
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	watcher.Refresh(context.Background())
	store, err := claims.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files, err := cdifiles.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	driver := New(Config{
		Node: "node-1", Host: client, Watcher: watcher, Store: store, Files: files, Kube: fake.NewClientset(),
		Owns: func(string) bool { return true }, Stop: func(err error) { t.Error(err) },
	})
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nic", UID: "nic-uid"},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
				{Request: "nic", Driver: DriverName, Pool: "node-1", Device: "pf0vf0"},
			}},
		}},
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	results, err := driver.PrepareResourceClaims(ctx, []*resourceapi.ResourceClaim{claim})
	if err == nil && results[claim.UID].Err == nil {
		t.Error("the prepare succeeds")
	}
	if record, err := store.Get("nic-uid"); err != nil || record != nil {
		t.Errorf("the claim has a record: %v, %v", record, err)
	}
	if results, err := driver.PrepareResourceClaims(context.Background(), []*resourceapi.ResourceClaim{claim}); err != nil || results[claim.UID].Err != nil {
		t.Errorf("the next prepare fails: %v, %v", results, err)
	}
}
