package holders_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

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

// The watcher asks every second, and one line is enough.
func TestUnreadableRecordIsLoggedOnce(t *testing.T) {
	var lines []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	folder := t.TempDir()
	store, err := claims.OpenStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	all, path := open(t, store), filepath.Join(folder, "uid-1.json")
	for round, content := range []string{"garbage", "{}", `{"version":1,"uid":"uid-1","devices":[{"vf":"pf0vf0"}]}`, "garbage"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		lines = nil
		for range 3 {
			all.Report(ctx)
		}
		if isReadable := round == 2; len(lines) > 1 || (len(lines) == 0) != isReadable {
			t.Errorf("%s: %q", content, lines)
		}
	}
	// Its holder still counts.
	if report := all.Report(ctx); report.ByVF["pf0vf0"].UID != "uid-1" || !strings.Contains(report.Fault, path) {
		t.Errorf("%+v", report)
	}
}
