package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
)

// clientTimeout bounds one request. A release may wait for the host.
const clientTimeout = 30 * time.Second

// Client sends requests to a running agent.
type Client struct{ socket string }

// NewClient returns a client of the agent behind a socket.
func NewClient(socket string) *Client { return &Client{socket: socket} }

// Drain lets a port or VF take no new pods.
func (c *Client) Drain(name string) error {
	_, err := c.send(http.MethodPost, "/drain/"+url.PathEscape(name))
	return err
}

// Undrain lets a port or VF take new pods again.
func (c *Client) Undrain(name string) error {
	_, err := c.send(http.MethodDelete, "/drain/"+url.PathEscape(name))
	return err
}

// Release releases a claim by its UID.
func (c *Client) Release(uid string) error {
	_, err := c.send(http.MethodPost, "/release/"+url.PathEscape(uid))
	return err
}

// Status returns every VF with its claim.
func (c *Client) Status() (Status, error) {
	var status Status
	content, err := c.send(http.MethodGet, "/status")
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal(content, &status)
}

// PodVFs returns the names of the VFs that a pod has by the device plugin.
func (c *Client) PodVFs(namespace, name string) ([]string, error) {
	content, err := c.send(http.MethodGet, "/pods/"+url.PathEscape(namespace)+"/"+url.PathEscape(name))
	if err != nil {
		return nil, err
	}
	var vfs []string
	return vfs, json.Unmarshal(content, &vfs)
}

func (c *Client) send(method, path string) ([]byte, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", c.socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: clientTimeout}
	request, err := http.NewRequest(method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("no agent answers on %s: %w; run this in the agent's pod, with the agent's --state", c.socket, err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(content)))
	}
	return content, nil
}

// Print writes a table of VFs, and below it the reasons of those that take no new pods.
func Print(to io.Writer, all Status) error {
	table := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "VF\tFAMILY\tSTATE\tRESOURCE\tPOD\tCLAIM\tUID")
	for _, vf := range all.VFs {
		state := "ready"
		switch {
		case vf.Released:
			state = "releasing"
		case !vf.Healthy:
			state = "unhealthy"
		case vf.Drained:
			state = "drained"
		case vf.Held != "":
			state = "held"
		case all.HoldersUnknown:
			state = "unknown"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", vf.VF, vf.Family, state, dash(vf.Resource), dash(vf.Pod), dash(vf.Claim), dash(vf.UID))
	}
	for _, vf := range all.VFs {
		for _, reason := range []string{vf.Reason, vf.Held} {
			if reason != "" {
				fmt.Fprintf(table, "%s: %s\n", vf.VF, reason)
			}
		}
	}
	if all.HoldersFault != "" {
		fmt.Fprintln(table, all.HoldersFault)
	}
	return table.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
