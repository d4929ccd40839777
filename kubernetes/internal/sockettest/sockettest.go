// Package sockettest serves HTTP on a socket for tests.
package sockettest

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// Serve answers requests until the end of the test, and returns the path of the socket.
func Serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	// The path of a socket is short, which that of a test's folder may not be.
	folder, err := os.MkdirTemp("", "st")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "http.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return socket
}
