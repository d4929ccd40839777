package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
)

// get returns status and body of a path.
func get(server *Server, path string) (int, string) {
	answer := httptest.NewRecorder()
	server.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func TestMetricsAndReadinessFollowTheHost(t *testing.T) {
	folder, err := os.MkdirTemp("", "sn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	store, err := claims.OpenStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	record := &claims.Record{UID: "a-1", Namespace: "default", Name: "nic", Devices: []claims.Device{{VF: "pf0vf0"}}}
	if err := store.Put(record); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "c.sock")
	client := host.NewClient(socket)
	watcher := inventory.NewWatcher(client, time.Hour, func() []string { return nil })
	server := &Server{Host: client, Watcher: watcher, Admin: &admin.Server{Watcher: watcher, Store: store, ResourceOf: func(string) string { return "" }}}
	watcher.Refresh(context.Background())
	if code, text := get(server, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, socket) {
		t.Errorf("readyz without a host: %d %s", code, text)
	}
	if code, text := get(server, "/metrics"); code != http.StatusOK || !strings.Contains(text, "softiov_node_host_reachable 0\n") {
		t.Errorf("metrics without a host: %d %s", code, text)
	}

	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answers := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/metrics" {
			fmt.Fprintln(answer, "softiov_up 1")
			return
		}
		fmt.Fprint(answer, `[{"name":"pf0","vfs":[{"name":"pf0vf0","socket":"/a/vf.sock"}]}]`)
	})}
	go func() { _ = answers.Serve(listener) }()
	t.Cleanup(func() { answers.Close() })
	watcher.Refresh(context.Background())
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
