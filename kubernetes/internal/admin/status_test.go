package admin

import (
	"strings"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

// openHolders returns a watcher of a host with one VF, and of the pods that kubelet reports on a socket.
func openHolders(t *testing.T, socket string) (*Server, *inventory.Watcher) {
	t.Helper()
	store, err := claims.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	client := hosttest.Start(t, func() []host.Port { return []host.Port{hosttest.Port("pf0", "avf", "pf0vf0")} })
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	pods := podresources.NewClient(socket)
	if watcher.Holders, err = holders.Open(t.TempDir()+"/resources.json", store, pods, []string{"a.b/c"}); err != nil {
		t.Fatal(err)
	}
	return &Server{Watcher: watcher, Store: store}, watcher
}

// table returns what the command status prints.
func table(t *testing.T, server *Server) string {
	t.Helper()
	status, err := server.Status()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := Print(&table, status); err != nil {
		t.Fatal(err)
	}
	return table.String()
}

// Nothing is offered meanwhile, and an administrator has to find out why.
func TestStatusHasTheReasonForUnknownHolders(t *testing.T) {
	kubelet := podresourcestest.Start(t)
	server, watcher := openHolders(t, kubelet.Socket)
	kubelet.Refuse(true)
	_ = watcher.RefreshHolders(t.Context())
	watcher.Refresh(t.Context())
	const reason = "\nkubelet has not reported the devices of pods on "
	if got := table(t, server); !strings.Contains(got, " unknown ") || !strings.Contains(got, reason+kubelet.Socket) {
		t.Error(got)
	}
	kubelet.Refuse(false)
	if err := watcher.RefreshHolders(t.Context()); err != nil {
		t.Fatal(err)
	}
	watcher.Refresh(t.Context())
	if got := table(t, server); !strings.Contains(got, " ready ") || strings.Contains(got, reason) {
		t.Error(got)
	}
	// The pods of the last report still count.
	kubelet.Refuse(true)
	_ = watcher.RefreshHolders(t.Context())
	watcher.Refresh(t.Context())
	if got := table(t, server); !strings.Contains(got, " ready ") || !strings.Contains(got, reason+kubelet.Socket) {
		t.Error(got)
	}
}

func TestStatusNamesResourceAndHolderOfEachVF(t *testing.T) {
	store, err := claims.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for uid, vf := range map[string]string{"uid-1": "pf0vf0", "uid-2": "pf1vf0"} {
		record := &claims.Record{UID: uid, Namespace: "default", Name: "nic", Devices: []claims.Device{{VF: vf}}}
		if err := store.Put(record); err != nil {
			t.Fatal(err)
		}
	}
	pods := podresources.NewClient(podresourcestest.Serve(t,
		podresourcestest.Pod("default", "old", "a.b/old", []string{"pf0vf1", "pf1vf2"}),
		podresourcestest.Pod("default", "web", "a.b/c", []string{"pf1vf1"})))
	client := hosttest.Start(t, func() []host.Port {
		return []host.Port{hosttest.Port("pf0", "avf", "pf0vf0", "pf0vf1"), hosttest.Port("pf1", "avf", "pf1vf0", "pf1vf1", "pf1vf2", "pf1vf3")}
	})
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	if watcher.Holders, err = holders.Open(t.TempDir()+"/resources.json", store, pods, []string{"a.b/c", "a.b/old"}); err != nil {
		t.Fatal(err)
	}
	watcher.ResourceOf = func(port string) string { return map[string]string{"pf1": "a.b/c"}[port] }
	if err := watcher.RefreshHolders(t.Context()); err != nil {
		t.Fatal(err)
	}
	watcher.Refresh(t.Context())
	server := &Server{Watcher: watcher, Store: store}
	printed := table(t, server)
	lines := strings.Split(printed, "\n")
	for i, want := range []string{
		"VF FAMILY STATE RESOURCE POD CLAIM UID",
		"pf0vf0 avf ready - - default/nic uid-1", "pf0vf1 avf held - default/old - -",
		"pf1vf0 avf held a.b/c - default/nic uid-2", "pf1vf1 avf ready a.b/c default/web - -",
		"pf1vf2 avf held a.b/c default/old - -", "pf1vf3 avf ready a.b/c - - -",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, want := range []string{
		"pf0vf1: pod default/old has VF pf0vf1 as a.b/old", "pf1vf0: claim default/nic (uid-2) has VF pf1vf0",
		"pf1vf2: pod default/old has VF pf1vf2 as a.b/old",
	} {
		if !strings.Contains(printed, "\n"+want) {
			t.Errorf("the table lacks %q:\n%s", want, printed)
		}
	}
}
