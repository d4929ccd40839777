package dra

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

// withKubelet adds a kubelet without pods to a bench, on a node with an extended resource.
func withKubelet(b *bench) *podresourcestest.Server {
	b.t.Helper()
	kubelet := podresourcestest.Start(b.t)
	path, pods := filepath.Join(b.t.TempDir(), "resources.json"), podresources.NewClient(kubelet.Socket)
	all, err := holders.Open(path, b.store, pods, []string{"softiov.io/vf"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.watcher.Holders = all
	return kubelet
}

// A kubelet that accepts requests and does not answer costs ten seconds for each.
func TestClaimsOfOneCallShareOneRequestToKubelet(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1", "pf0vf2"})
	kubelet := withKubelet(b)
	first, second, third := newClaim("first", "", "pf0vf0"), newClaim("second", "", "pf0vf1"), newClaim("third", "", "pf0vf2")
	kubelet.Refuse(true)
	for uid, err := range b.prepareAll(first, second, third) {
		if err == nil || !strings.Contains(err.Error(), "kubelet starts") {
			t.Errorf("%s: %v", uid, err)
		}
	}
	if requests := kubelet.Requests(); requests != 1 {
		t.Errorf("kubelet had %d requests without an answer", requests)
	}
	kubelet.Refuse(false)
	for uid, err := range b.prepareAll(first, second, third) {
		if err != nil {
			t.Errorf("%s: %v", uid, err)
		}
	}
	if requests := kubelet.Requests(); requests != 1 {
		t.Errorf("kubelet had %d requests for new claims", requests)
	}
	// Kubelet repeats prepare after a restart, before it answers itself.
	kubelet.Refuse(true)
	for uid, err := range b.prepareAll(first, second, third) {
		if err != nil {
			t.Errorf("%s: %v", uid, err)
		}
	}
	if requests := kubelet.Requests(); requests != 0 {
		t.Errorf("kubelet had %d requests for prepared claims", requests)
	}
}

// Pods must be able to end meanwhile.
func TestUnprepareDoesNotWaitForKubeletsReport(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1"})
	kubelet := withKubelet(b)
	first, second := newClaim("first", "", "pf0vf0"), newClaim("second", "", "pf0vf1")
	b.mustPrepare(first)
	held := kubelet.Hold()
	prepared := make(chan error)
	go func() {
		results, err := b.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{second})
		prepared <- errors.Join(err, results[second.UID].Err)
	}()
	<-held
	if err := b.unprepare(first); err != nil {
		t.Error(err)
	}
	select {
	case err := <-prepared:
		t.Errorf("prepared without kubelet's report: %v", err)
	default:
	}
	held <- struct{}{}
	if err := <-prepared; err != nil {
		t.Error(err)
	}
}
