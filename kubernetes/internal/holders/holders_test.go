package holders_test

import (
	"path/filepath"
	"testing"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

// open returns the holders of VFs by a store, and by a kubelet without pods.
func open(t *testing.T, store *claims.Store) *holders.Holders {
	t.Helper()
	pods := podresources.NewClient(podresourcestest.Serve(t))
	all, err := holders.Open(filepath.Join(t.TempDir(), "resources.json"), store, pods, []string{"softiov.io/vf"})
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all
}

// newStore returns the store in a new folder.
func newStore(t *testing.T) *claims.Store {
	t.Helper()
	store, err := claims.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// A record that is not rebuilt yet may be that of a VF in use.
func TestHoldersAreUnknownUntilRecordsAreRebuilt(t *testing.T) {
	store := newStore(t)
	all := open(t, store)
	if all.Report(t.Context()).Unknown {
		t.Error("an agent without a DRA driver waits for records that nothing rebuilds")
	}
	all.Rebuilds = true
	if !all.Report(t.Context()).Unknown {
		t.Error("holders are known although records may be missing")
	}
	if err := store.SetComplete(); err != nil {
		t.Fatal(err)
	}
	if all.Report(t.Context()).Unknown {
		t.Error("holders are unknown although no record is missing")
	}
}
