// Package hosttest is a host for tests that need no card: it answers with the ports that the test gives.
package hosttest

import (
	"encoding/json"
	"net/http"
	"testing"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/sockettest"
)

// Start serves ports until the end of the test, and returns a client.
func Start(t *testing.T, ports func() []host.Port) *host.Client {
	t.Helper()
	return host.NewClient(sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(answer).Encode(ports()); err != nil {
			t.Error(err)
		}
	}))
}

// Port returns a port with healthy VFs.
func Port(name, family string, vfs ...string) host.Port {
	port := host.Port{Name: name, Family: family}
	for _, vf := range vfs {
		port.VFs = append(port.VFs, host.VF{Name: vf, Socket: "/run/softiov/" + vf + "/vf.sock"})
	}
	return port
}
