// Package host talks to a running SoftIOV host over its control socket.
package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Port is the status of one port of the host. Fields that the agent does not use are left out.
type Port struct {
	Name   string `json:"name"`
	Family string `json:"family"`
	Uplink string `json:"uplink"`
	Link   bool   `json:"link"`
	// CPUs are the processors of the port's thread; empty if the thread may use any.
	CPUs []int `json:"cpus"`
	VFs  []VF  `json:"vfs"`
	// UplinkStatus is nil for a port without an uplink.
	UplinkStatus *struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"uplink_status"`
}

// VF is the status of one virtual function.
type VF struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	// Family is the card family; empty from a host of an earlier version, where it is the port's.
	Family string `json:"family"`
	// RoutingID is the PCI address without a domain, such as 00:10.1; empty for a virtio VF.
	RoutingID string   `json:"rid"`
	MAC       string   `json:"mac"`
	Settings  Settings `json:"settings"`
	// Origins has the source of each setting that is not a default: file, kept or volatile.
	Origins map[string]string `json:"origins"`
	Socket  string            `json:"socket"`
	// SocketMode is "server" if the host listens on the socket, "client" if the VMM does.
	SocketMode string `json:"socket_mode"`
	Conduct    struct {
		// Quarantine is the reason of the VF's quarantine, or nil.
		Quarantine *string `json:"quarantine"`
	} `json:"conduct"`
	// Peer is the VMM that is connected to the socket, or nil.
	Peer *Peer `json:"peer"`
}

// Peer is a VMM that is connected to a VF's socket.
type Peer struct {
	PID int `json:"pid"`
	UID int `json:"uid"`
}

// String describes the process. It has no number if it runs in a PID namespace that is not below the host's, as in another
// pod.
func (p *Peer) String() string {
	if p.PID == 0 {
		return fmt.Sprintf("a process of user %d in another container", p.UID)
	}
	return fmt.Sprintf("process %d of user %d", p.PID, p.UID)
}

// Settings are values of a VF's policy as JSON, by the names of the host's API.
type Settings map[string]json.RawMessage

// Change is a request to change a VF's settings, all of them or none.
type Change struct {
	Set Settings `json:"set"`
	// Default names the settings to give back to the configuration file, or to their defaults.
	Default []string `json:"default,omitempty"`
	// Volatile lets the set values end with the host.
	Volatile bool `json:"volatile,omitempty"`
}

// Problem is an error that the host returned (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

// Error returns the problem's detail, or its title and remedy if it has no detail.
func (p *Problem) Error() string {
	switch {
	case p.Detail != "":
		return p.Detail
	case p.Remedy != "":
		return fmt.Sprintf("%s: %s", p.Title, p.Remedy)
	default:
		return fmt.Sprintf("%s (HTTP status %d)", p.Title, p.Status)
	}
}

// UnreachableError reports that no host answered on the control socket.
type UnreachableError struct {
	Socket string
	Err    error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the host does not answer on %s: %v; is `softiov serve` running?", e.Socket, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// IsUnreachable reports whether the error means that the host did not answer, or not yet (HTTP status 503), so that a later
// attempt may succeed.
func IsUnreachable(err error) bool {
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		return true
	}
	var problem *Problem
	return errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable
}

// IsRefusal reports whether the host has refused the request itself, so that a later attempt would be refused as well.
func IsRefusal(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && !IsUnreachable(err)
}

// IsNoSuchName reports whether the host has no port or VF with the requested name.
func IsNoSuchName(err error) bool {
	var problem *Problem
	return errors.As(err, &problem) && problem.Status == http.StatusNotFound
}
