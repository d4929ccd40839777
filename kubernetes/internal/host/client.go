package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

const (
	// requestTimeout bounds one request with its answer.
	requestTimeout = 10 * time.Second
	// upgradeTimeout bounds the request for another host process. It is longer than the host's own bound of a hand-over (20 s,
	// HAND_OVER in the daemon's management module): a request that ends before would be repeated, and pause the guests once more.
	upgradeTimeout = 60 * time.Second
	// maxAnswer bounds the bytes that the client reads of an answer. Three ports with 64 VFs take about 400 KiB.
	maxAnswer = 16 << 20
	// handedOver is the type of the problem that a host returns after another process took over from it.
	handedOver = "urn:softiov:problem:handed-over"
	// connectInterval is the pause before another attempt to connect to a socket whose queue is full.
	connectInterval = 50 * time.Millisecond
	// attempts bounds how often a request is sent while hosts hand over to each other.
	attempts = 5
)

// Client sends requests to the host behind one control socket.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a client of the host that serves the control socket. It connects at the first request.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return connect(ctx, socket)
	}
	// A host that was replaced leaves kept connections behind, so each request has its own.
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return &Client{socket: socket, http: &http.Client{Transport: transport, Timeout: requestTimeout}}
}

// connect connects to a control socket. A host that hands over accepts no client for a moment, and the kernel refuses one for which
// the socket's queue has no room with EAGAIN, where connect(2) would wait.
func connect(ctx context.Context, socket string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(connectInterval):
		}
	}
}

// Socket returns the path of the control socket.
func (c *Client) Socket() string { return c.socket }

// Ports returns the status of every port with its VFs.
func (c *Client) Ports(ctx context.Context) ([]Port, error) {
	var ports []Port
	return ports, c.request(ctx, http.MethodGet, "/v1/ports", nil, &ports)
}

// VF returns the status of one VF.
func (c *Client) VF(ctx context.Context, name string) (VF, error) {
	var vf VF
	return vf, c.request(ctx, http.MethodGet, "/v1/vfs/"+url.PathEscape(name), nil, &vf)
}

// ChangeVF changes settings of a VF. The host applies all of them or none, and keeps them over a restart.
func (c *Client) ChangeVF(ctx context.Context, name string, change Change) error {
	if change.Set == nil {
		change.Set = Settings{}
	}
	return c.request(ctx, http.MethodPatch, "/v1/vfs/"+url.PathEscape(name), change, nil)
}

// Disconnect ends the connection of a VF's client.
func (c *Client) Disconnect(ctx context.Context, name string) error {
	return c.request(ctx, http.MethodPost, "/v1/vfs/"+url.PathEscape(name)+"/disconnect", nil, nil)
}

// Upgrade has a new process of the installed program take over from the host. Clients of VFs stay connected.
func (c *Client) Upgrade(ctx context.Context) error {
	patient := &Client{socket: c.socket, http: &http.Client{Transport: c.http.Transport, Timeout: upgradeTimeout}}
	return patient.request(ctx, http.MethodPost, "/v1/upgrade", nil, nil)
}

// Metrics copies the host's counters in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context, to io.Writer) error {
	answer, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(to, io.LimitReader(answer.Body, maxAnswer))
	return err
}

// request sends a request, again if a new host process has just taken over, and decodes the answer.
func (c *Client) request(ctx context.Context, method, path string, body, result any) error {
	for attempt := 1; ; attempt++ {
		answer, err := c.send(ctx, method, path, body)
		var problem *Problem
		if errors.As(err, &problem) && problem.Type == handedOver && attempt < attempts {
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if result == nil {
			return nil
		}
		content, err := c.read(answer)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(content, result); err != nil {
			return fmt.Errorf("the host's answer to %s %s is not valid: %w", method, path, err)
		}
		return nil
	}
}

// read reads the body of an answer. A host that ends or stops within its answer is one that does not answer.
func (c *Client) read(answer *http.Response) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, &UnreachableError{Socket: c.socket, Err: err}
	}
	return content, nil
}

// send sends one request. An answer with an error status becomes a *Problem.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, &UnreachableError{Socket: c.socket, Err: err}
	}
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer answer.Body.Close()
	text, err := c.read(answer)
	if err != nil {
		return nil, err
	}
	problem := &Problem{Title: answer.Status}
	// A body that is no problem leaves the title.
	_ = json.Unmarshal(text, problem)
	problem.Status = answer.StatusCode
	return nil, problem
}

// sleep waits, or returns the context's error if the context ends first.
func sleep(ctx context.Context, duration time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(duration):
		return nil
	}
}
