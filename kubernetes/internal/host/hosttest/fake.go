package hosttest

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/sockettest"
)

// defaults has the values of settings without a value of their own.
var defaults = host.Settings{
	"vlan": json.RawMessage("0"), "qos": json.RawMessage("0"), "max_tx_rate": json.RawMessage("0"),
	"mac": json.RawMessage(`"00:00:00:00:00:00"`),
}

// Host is a host in memory, which keeps settings of VFs as the real one does. A test may let it refuse requests.
type Host struct {
	Client *host.Client

	mutex    sync.Mutex
	ports    []host.Port
	requests []string
	refuse   func(method, path string) *host.Problem
}

// New starts a host with one port, pf0, until the end of the test.
func New(t *testing.T, vfs ...string) *Host {
	t.Helper()
	port := Port("pf0", "82576", vfs...)
	for i := range port.VFs {
		vf := &port.VFs[i]
		vf.Settings, vf.Origins = host.Settings{}, map[string]string{}
		for name, value := range defaults {
			vf.Settings[name] = value
		}
	}
	h := &Host{ports: []host.Port{port}}
	h.Client = host.NewClient(sockettest.Serve(t, h.serve))
	return h
}

// Refuse lets the host return the problem that a function has for a request, if any.
func (h *Host) Refuse(refuse func(method, path string) *host.Problem) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.refuse = refuse
}

// Away lets the host answer nothing but that it is away.
func Away(string, string) *host.Problem {
	return &host.Problem{Status: http.StatusServiceUnavailable, Title: "away"}
}

// Requests returns the requests since the last call, such as "PATCH pf0vf0".
func (h *Host) Requests() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	requests := h.requests
	h.requests = nil
	return requests
}

// Edit changes a VF behind the agent's back.
func (h *Host) Edit(name string, edit func(vf *host.VF)) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if vf := h.find(name); vf != nil {
		edit(vf)
	}
}

// Set sets a setting as the administrator does: kept, volatile, file, or default.
func (h *Host) Set(vf, name, value, origin string) {
	h.Edit(vf, func(vf *host.VF) {
		vf.Settings[name], vf.Origins[name] = json.RawMessage(value), origin
		if origin == "default" {
			delete(vf.Origins, name)
		}
	})
}

// Setting returns a setting of a VF with its origin, such as "100 kept".
func (h *Host) Setting(vf, name string) string {
	text := ""
	h.Edit(vf, func(vf *host.VF) { text = strings.TrimSpace(string(vf.Settings[name]) + " " + vf.Origins[name]) })
	return text
}

// find returns a VF by name, or nil.
func (h *Host) find(name string) *host.VF {
	for i := range h.ports {
		for j := range h.ports[i].VFs {
			if h.ports[i].VFs[j].Name == name {
				return &h.ports[i].VFs[j]
			}
		}
	}
	return nil
}

// serve answers one request.
func (h *Host) serve(answer http.ResponseWriter, request *http.Request) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	name, isVF := strings.CutPrefix(request.URL.Path, "/v1/vfs/")
	h.requests = append(h.requests, request.Method+" "+strings.TrimPrefix(name, "/v1/"))
	problem := (*host.Problem)(nil)
	if h.refuse != nil {
		problem = h.refuse(request.Method, request.URL.Path)
	}
	name, isDisconnect := strings.CutSuffix(name, "/disconnect")
	vf := h.find(name)
	if problem == nil && isVF && vf == nil {
		problem = &host.Problem{Status: http.StatusNotFound, Title: "no such name"}
	}
	var result any = h.ports
	switch {
	case problem != nil:
		answer.WriteHeader(problem.Status)
		result = problem
	case isDisconnect:
		vf.Peer, result = nil, struct{}{}
	case request.Method == http.MethodPatch:
		result = change(vf, request)
	case isVF:
		result = vf
	}
	_ = json.NewEncoder(answer).Encode(result)
}

// change gives settings back first, then sets the others.
func change(vf *host.VF, request *http.Request) any {
	var change host.Change
	_ = json.NewDecoder(request.Body).Decode(&change)
	for _, name := range change.Default {
		vf.Settings[name] = defaults[name]
		delete(vf.Origins, name)
	}
	for name, value := range change.Set {
		vf.Settings[name], vf.Origins[name] = value, "kept"
		if change.Volatile {
			vf.Origins[name] = "volatile"
		}
	}
	return vf
}
