package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// start serves a handler on the machine's own address, and returns the address.
func start(t *testing.T, handler http.HandlerFunc, writeTimeout time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- HTTP(ctx, listener, handler, writeTimeout) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

func open(t *testing.T, address string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

func TestOneConnectionTooManyClosesTheOldest(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	bounded := &bounded{Listener: listener}
	var clients, accepted []net.Conn
	for range MaxConnections + 1 {
		clients = append(clients, open(t, listener.Addr().String()))
		connection, err := bounded.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, connection)
	}
	if _, err := clients[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the oldest connection: %v", err)
	}
	for _, connection := range accepted[1:] {
		if _, err := connection.Write([]byte("a")); err != nil {
			t.Errorf("a connection within the limit: %v", err)
		}
		connection.Close()
		connection.Close()
	}
	if len(bounded.open) != 0 {
		t.Errorf("%d closed connections are counted", len(bounded.open))
	}
}

func TestHeldConnectionsKeepNoProbeOut(t *testing.T) {
	address := start(t, func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "alive") }, time.Minute)
	for range 2 * MaxConnections {
		open(t, address)
	}
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != "alive" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestClientThatDoesNotReadIsDisconnected(t *testing.T) {
	ended := make(chan error, 1)
	address := start(t, func(answer http.ResponseWriter, _ *http.Request) {
		var err error
		for content := bytes.Repeat([]byte("a"), 1<<20); err == nil; {
			_, err = answer.Write(content)
		}
		ended <- err
	}, 50*time.Millisecond)
	connection := open(t, address)
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
			t.Errorf("the answer ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the server waits for a client that does not read")
	}
}

func TestConnectionServesOneRequest(t *testing.T) {
	address := start(t, func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "alive") }, time.Minute)
	connection := open(t, address)
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(connection); err != nil || !bytes.HasSuffix(text, []byte("alive")) {
		t.Errorf("%s, %v", text, err)
	}
}
