// Package hosttest is a host for tests that need no card: it answers with the ports that the test gives.
package hosttest

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"softiov.io/kubernetes/internal/host"
)

// Start serves ports until the end of the test, and returns a client.
func Start(t *testing.T, ports func() []host.Port) *host.Client {
	t.Helper()
	// The path of a socket is short, which that of a test's folder may not be.
	folder, err := os.MkdirTemp("", "ht")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "control.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(answer).Encode(ports()); err != nil {
			t.Error(err)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return host.NewClient(socket)
}

// Port returns a port with healthy VFs.
func Port(name, family string, vfs ...string) host.Port {
	port := host.Port{Name: name, Family: family}
	for _, vf := range vfs {
		port.VFs = append(port.VFs, host.VF{Name: vf, Socket: "/run/softiov/" + vf + "/vf.sock"})
	}
	return port
}
