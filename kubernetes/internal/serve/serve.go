// Package serve answers HTTP requests with a limit of connections and with timeouts.
package serve

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// MaxConnections is the number of connections that a server keeps. Each serves one request.
	MaxConnections = 64
	// readTimeout bounds how long a client may take for its request.
	readTimeout = 5 * time.Second
)

// HTTP answers requests until the context ends. The write timeout bounds a request from its end to that of its answer.
func HTTP(ctx context.Context, listener net.Listener, handler http.Handler, writeTimeout time.Duration) error {
	server := &http.Server{Handler: handler, ReadTimeout: readTimeout, WriteTimeout: writeTimeout}
	server.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(&bounded{Listener: listener}); ctx.Err() == nil {
		return err
	}
	return nil
}

// bounded is a listener that closes the oldest connection if a client opens one too many. A limit that refuses the newest
// would let a client that holds connections keep out kubelet's probes.
type bounded struct {
	net.Listener

	mutex sync.Mutex
	// open has the open connections, the oldest first.
	open []net.Conn
}

// Accept returns the next connection.
func (b *bounded) Accept() (net.Conn, error) {
	inner, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	connection := &counted{Conn: inner, listener: b}
	if oldest := b.add(connection); oldest != nil {
		oldest.Close()
	}
	return connection, nil
}

// add adds a connection, and returns the oldest one if there are too many.
func (b *bounded) add(connection net.Conn) net.Conn {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.open = append(b.open, connection)
	if len(b.open) <= MaxConnections {
		return nil
	}
	return b.open[0]
}

func (b *bounded) remove(connection net.Conn) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.open = slices.DeleteFunc(b.open, func(one net.Conn) bool { return one == connection })
}

// counted is a connection that its listener counts.
type counted struct {
	net.Conn
	listener *bounded
}

// Close closes the connection. The server may close it again.
func (c *counted) Close() error {
	c.listener.remove(c)
	return c.Conn.Close()
}
