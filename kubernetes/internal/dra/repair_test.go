package dra

import (
	"context"
	"errors"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"softiov.io/kubernetes/internal/host/hosttest"
)

// Reported for dra-driver-nvidia-gpu (#374): calls of kubelet wait for each other until they time out. A host that accepts
// requests and does not answer costs ten seconds for each.
func TestHostWithoutAnswerIsAskedOnce(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1", "pf0vf2", "pf0vf3"})
	first, second := newClaim("first", `"vlan":100`, "pf0vf0", "pf0vf1"), newClaim("second", `"vlan":20`, "pf0vf2", "pf0vf3")
	b.mustPrepare(first)
	b.mustPrepare(second)
	b.host.Refuse(hosttest.Away)
	for what, call := range map[string]func() error{
		"repair": func() error { return b.Repair(context.Background()) },
		"prepare": func() error {
			return errors.Join(b.prepareAll(first, second)[first.UID], b.prepareAll(first)[first.UID])
		},
	} {
		b.host.Requests()
		want := map[string]int{"repair": 1, "prepare": 2}[what]
		if err := call(); err == nil {
			t.Errorf("%s succeeds", what)
		}
		if requests := b.host.Requests(); len(requests) != want {
			t.Errorf("%s: %v", what, requests)
		}
	}
	if err := b.unprepare(first, second); err != nil {
		t.Error(err)
	}
	if requests := b.host.Requests(); len(requests) != 1 {
		t.Errorf("unprepare: %v", requests)
	}
	if !b.record(first).Released || !b.record(second).Released {
		t.Error("a release is not on the disk")
	}
	b.host.Refuse(nil)
	b.repair()
	b.expect("pf0vf1", "vlan", "0")
	b.expect("pf0vf3", "vlan", "0")
}

func TestRebuiltClaimsDoNotDelayTheOthers(t *testing.T) {
	vfs, ended := []string{"pf0vf0", "pf0vf1", "pf0vf2", "pf0vf3"}, newClaim("c", `"vlan":100`, "pf0vf3")
	b := newBench(t, vfs, newClaim("a", `"vlan":100`, "pf0vf0"), newClaim("b", `"vlan":100`, "pf0vf1"), ended)
	for _, vf := range []string{"pf0vf0", "pf0vf1", "pf0vf3"} {
		b.host.Set(vf, "vlan", "100", "kept")
	}
	b.repair()
	b.mustPrepare(newClaim("d", `"vlan":20`, "pf0vf2"))
	b.host.Refuse(addressInUse)
	if err := b.unprepare(ended); err != nil {
		t.Fatal(err)
	}
	b.host.Refuse(nil)
	gets := 0
	b.kube.(*fake.Clientset).PrependReactor("get", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		gets++
		return true, nil, errors.New("no answer")
	})
	// The host has lost what it kept.
	b.host.Set("pf0vf2", "vlan", "0", "default")
	if err := b.Repair(context.Background()); !errors.Is(err, errAPI) || gets != 1 {
		t.Errorf("%v after %d requests", err, gets)
	}
	b.expect("pf0vf2", "vlan", "20 kept")
	b.expect("pf0vf3", "vlan", "0")
}

// The settings of a claim in use would stay on its VF for ever if it had no record.
func TestClaimInUseIsRebuiltAlthoughItWouldBeRefused(t *testing.T) {
	claim, unused := newClaim("first", `"vlan":100,"qos":3`, "pf0vf0", "gone"), newClaim("unused", `"vlan":20`, "pf0vf1")
	b := newBench(t, []string{"pf0vf0", "pf0vf1"}, claim, unused)
	// The agent set both; then the administrator has changed qos.
	b.host.Set("pf0vf0", "vlan", "100", "kept")
	b.host.Set("pf0vf0", "qos", "5", "kept")
	// A claim that would be refused, and of which nothing is in force, was never prepared.
	b.host.Set("pf0vf1", "vlan", "30", "file")
	b.repair()
	if record := b.record(claim); record == nil || len(record.Devices) != 1 {
		t.Fatalf("%+v", record)
	}
	if record := b.record(unused); record != nil {
		t.Errorf("%+v", record)
	}
	if err := b.prepareOne(claim); err == nil {
		t.Error("kubelet may start a container with another policy than the claim's")
	}
	b.repair()
	if err := b.unprepare(claim); err != nil {
		t.Fatal(err)
	}
	b.expect("pf0vf0", "vlan", "0")
	b.expect("pf0vf0", "qos", "5 kept")
}

// Kubelet counts the VFs of such a port from zero, and would give them to pods of the device plugin.
func TestClaimIsRebuiltAfterItsPortHasChangedSides(t *testing.T) {
	withPolicy, without := newClaim("policy", `"vlan":100`, "pf0vf0"), newClaim("plain", "", "pf0vf1")
	ended := newClaim("ended", "", "pf0vf2")
	ended.Status.ReservedFor = nil
	b := newBench(t, []string{"pf0vf0", "pf0vf1", "pf0vf2"}, withPolicy, without, ended)
	b.owns = func(string) bool { return false }
	b.host.Set("pf0vf0", "vlan", "100", "kept")
	b.repair()
	for claim, want := range map[*resourceapi.ResourceClaim]bool{withPolicy: true, without: true, ended: false} {
		if record := b.record(claim); (record != nil) != want {
			t.Errorf("%s: %+v", claim.Name, record)
		}
	}
	b.expect("pf0vf0", "vlan", "100 kept")
	// Without a pod the claims have ended, also if kubelet never prepared them.
	for _, name := range []string{"policy", "plain"} {
		if err := b.kube.ResourceV1().ResourceClaims("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.repair()
	if records, err := b.store.All(); err != nil || len(records) != 0 {
		t.Errorf("%v, %v", records, err)
	}
	b.expect("pf0vf0", "vlan", "0")
}

func TestFolderIsIncompleteWhileARecordCannotBeWritten(t *testing.T) {
	claim := newClaim("first", `"vlan":100`, "pf0vf0")
	b := newBench(t, []string{"pf0vf0"}, claim)
	b.host.Set("pf0vf0", "vlan", "100", "kept")
	free := fillDisk(t)
	if err := b.Repair(context.Background()); err == nil || b.store.IsComplete() {
		t.Errorf("complete without the record: %v", err)
	}
	free()
	b.repair()
	if record := b.record(claim); record == nil || !b.store.IsComplete() {
		t.Errorf("%+v", record)
	}
}

// The administrator's value is not the claim's. When it ends, with the host or by a command, the claim still wants its VLAN.
func TestClaimKeepsItsVLANWhenTheAdministratorsEnds(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1"})
	claim := newClaim("first", `"vlan":100`, "pf0vf0", "pf0vf1")
	b.host.Set("pf0vf0", "vlan", "100", "volatile")
	b.host.Set("pf0vf1", "vlan", "100", "file")
	b.mustPrepare(claim)
	b.expect("pf0vf0", "vlan", "100 volatile")
	b.host.Set("pf0vf0", "vlan", "0", "default")
	// Another value of the administrator is final.
	b.host.Set("pf0vf1", "vlan", "20", "file")
	b.repair()
	b.expect("pf0vf0", "vlan", "100 kept")
	b.expect("pf0vf1", "vlan", "20 file")
	if err := b.unprepare(claim); err != nil {
		t.Fatal(err)
	}
	b.expect("pf0vf0", "vlan", "0")
	b.expect("pf0vf1", "vlan", "20 file")
}
