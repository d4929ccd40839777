package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/sockettest"
)

// get returns status and body of a path.
func get(server *Server, path string) (int, string) {
	answer := httptest.NewRecorder()
	server.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// newServer returns a server for a host behind a socket, which may be missing, with a claim in the store.
func newServer(t *testing.T, socket string) *Server {
	t.Helper()
	store, err := claims.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	record := &claims.Record{UID: "a-1", Namespace: "default", Name: "nic", Devices: []claims.Device{{VF: "pf0vf0"}}}
	if err := store.Put(record); err != nil {
		t.Fatal(err)
	}
	client := host.NewClient(socket)
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	return &Server{Host: client, Watcher: watcher, Admin: &admin.Server{Watcher: watcher, Store: store}}
}

func TestAgentWithoutAHostIsNotReady(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "c.sock")
	server := newServer(t, socket)
	server.Watcher.Refresh(context.Background())
	if code, text := get(server, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, socket) {
		t.Errorf("readyz: %d %s", code, text)
	}
	if code, text := get(server, "/metrics"); code != http.StatusOK || !strings.Contains(text, "softiov_node_host_reachable 0\n") {
		t.Errorf("metrics: %d %s", code, text)
	}
}

// It offers nothing, and an update of the DaemonSet must not go on to the next node.
func TestAgentWithoutTheDevicesOfPodsIsNotReady(t *testing.T) {
	server := newServer(t, sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, `[]`) }))
	var err error
	pods := podresources.NewClient("/nonexistent")
	if server.Watcher.Holders, err = holders.Open(filepath.Join(t.TempDir(), "r.json"), server.Admin.Store, pods, []string{"a.b/c"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"devices of pods yet", "devices of pods on /nonexistent: "} {
		server.Watcher.Refresh(t.Context())
		if code, text := get(server, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "kubelet has not reported the "+want) {
			t.Errorf("readyz: %d %s", code, text)
		}
		_ = server.Watcher.RefreshHolders(t.Context())
	}
}

func TestMetricsAreThoseOfAgentAndHost(t *testing.T) {
	server := newServer(t, sockettest.Serve(t, func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/metrics" {
			fmt.Fprintln(answer, "softiov_up 1")
			return
		}
		fmt.Fprint(answer, `[{"name":"pf0","vfs":[{"name":"pf0vf0","socket":"/a/vf.sock"}]}]`)
	}))
	server.Watcher.Refresh(context.Background())
	if code, _ := get(server, "/readyz"); code != http.StatusOK {
		t.Errorf("readyz: %d", code)
	}
	_, text := get(server, "/metrics")
	for _, line := range []string{
		"softiov_node_host_reachable 1", `softiov_node_vf_healthy{port="pf0",vf="pf0vf0"} 1`,
		`softiov_node_vf_claim{claim="default/nic",port="pf0",vf="pf0vf0"} 1`, "softiov_up 1",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics lack %s:\n%s", line, text)
		}
	}
}

// The host keeps 64 control clients and disconnects the oldest of more, so scrapes must not cut off the agent's own requests.
func TestScrapesShareOneRequestToTheHost(t *testing.T) {
	var now, most, all atomic.Int32
	server := newServer(t, sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		all.Add(1)
		if at := now.Add(1); at > most.Load() {
			most.Store(at)
		}
		fmt.Fprintln(answer, "softiov_up 1")
		now.Add(-1)
	}))
	begin := time.Now()
	var scrapes sync.WaitGroup
	for range 200 {
		scrapes.Go(func() {
			if code, text := get(server, "/metrics"); code != http.StatusOK || !strings.Contains(text, "softiov_up 1") {
				t.Errorf("%d %s", code, text)
			}
		})
	}
	scrapes.Wait()
	if limit := int32(time.Since(begin)/answerAge) + 1; most.Load() != 1 || all.Load() > limit {
		t.Errorf("the host had %d requests, %d at a time; at most %d were allowed, one at a time", all.Load(), most.Load(), limit)
	}
}
