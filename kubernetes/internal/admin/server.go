// Package admin is the agent's interface for administrators: HTTP over a socket that only the agent's user can open.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/drain"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/serve"
	"softiov.io/kubernetes/internal/vfinfo"
)

const (
	// StateFolder is the folder for what must outlive the agent, and SocketName the file in it that the agent listens on.
	StateFolder = "/var/lib/softiov/node"
	SocketName  = "agent.sock"
)

// writeTimeout bounds a request. A client waits half as long.
const writeTimeout = 2 * clientTimeout

// Releaser releases a claim that kubelet has forgotten.
type Releaser interface {
	Release(ctx context.Context, uid string) error
}

// PodDevices returns the devices that kubelet has given to a pod, by their extended resource.
type PodDevices interface {
	Devices(ctx context.Context, namespace, name string) (map[string][]string, error)
}

// Server answers administrators and the CNI plugin.
type Server struct {
	Watcher *inventory.Watcher
	Drained *drain.Set
	Store   *claims.Store
	// Releaser is nil if the agent has no DRA driver.
	Releaser Releaser
	Pods     PodDevices
}

// Status is all VFs as the agent sees them.
type Status struct {
	VFs []VFStatus `json:"vfs"`
	// HoldersUnknown is true until the agent knows which claims and pods have VFs. It offers none until then.
	HoldersUnknown bool `json:"holdersUnknown,omitempty"`
	// HoldersFault is the reason why it does not know them, or not those of now, or empty.
	HoldersFault string `json:"holdersFault,omitempty"`
}

// VFStatus is one VF as the agent sees it.
type VFStatus struct {
	VF      string `json:"vf"`
	Port    string `json:"port"`
	Family  string `json:"family"`
	Healthy bool   `json:"healthy"`
	Reason  string `json:"reason,omitempty"`
	Drained bool   `json:"drained"`
	// Resource is the extended resource of the VF's port, or empty if the VF is for claims.
	Resource string `json:"resource,omitempty"`
	// Pod is namespace and name of the pod that has the VF by the device plugin, as kubelet reported at most ten seconds ago, or empty.
	Pod string `json:"pod,omitempty"`
	// Held is the reason why the VF takes no new pods although it is healthy: a claim or pod has it from before the VF's port was
	// given to the other side, or empty.
	Held string `json:"held,omitempty"`
	// Info is the description that a container with the VF has.
	Info vfinfo.Info `json:"info"`
	// Claim is namespace and name of the claim that has the VF, or empty.
	Claim string `json:"claim,omitempty"`
	UID   string `json:"uid,omitempty"`
	// Released is true if the claim has ended, and the host has not taken back its settings yet.
	Released bool `json:"released,omitempty"`
}

// Serve answers requests on the socket until the context ends.
func (s *Server) Serve(ctx context.Context, socket string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen for administrators: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serve.HTTP(ctx, listener, s.handler(), writeTimeout)
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(answer http.ResponseWriter, _ *http.Request) {
		status, err := s.Status()
		if err == nil {
			err = json.NewEncoder(answer).Encode(status)
		}
		report(answer, err)
	})
	mux.HandleFunc("GET /pods/{namespace}/{name}", func(answer http.ResponseWriter, request *http.Request) {
		vfs, err := s.podVFs(request.Context(), request.PathValue("namespace"), request.PathValue("name"))
		if err == nil {
			err = json.NewEncoder(answer).Encode(vfs)
		}
		report(answer, err)
	})
	mux.HandleFunc("POST /drain/{name}", func(answer http.ResponseWriter, request *http.Request) {
		name := request.PathValue("name")
		err := s.known(name)
		if err == nil {
			err = s.Drained.Add(name)
		}
		s.Watcher.Refresh(request.Context())
		report(answer, err)
	})
	mux.HandleFunc("DELETE /drain/{name}", func(answer http.ResponseWriter, request *http.Request) {
		err := s.Drained.Remove(request.PathValue("name"))
		s.Watcher.Refresh(request.Context())
		report(answer, err)
	})
	mux.HandleFunc("POST /release/{uid}", func(answer http.ResponseWriter, request *http.Request) {
		if s.Releaser == nil {
			report(answer, errors.New("this agent serves no claims (--dra=false); set agent.dra: true until all pods with claims have ended"))
			return
		}
		report(answer, s.Releaser.Release(request.Context(), request.PathValue("uid")))
	})
	return mux
}

// known refuses a name that is neither a port nor a VF, since a typing error would drain nothing.
func (s *Server) known(name string) error {
	snapshot := s.Watcher.Snapshot()
	for i := range snapshot.VFs {
		if snapshot.VFs[i].Name == name || snapshot.VFs[i].Port == name {
			return nil
		}
	}
	return fmt.Errorf("the host has no port or VF %q: softiov-node status", name)
}

// Status returns every VF with its claim.
func (s *Server) Status() (Status, error) {
	records, err := s.Store.All()
	if err != nil {
		return Status{}, err
	}
	snapshot := s.Watcher.Snapshot()
	all := Status{VFs: []VFStatus{}, HoldersUnknown: snapshot.HoldersUnknown, HoldersFault: snapshot.HoldersFault}
	for i := range snapshot.VFs {
		vf := &snapshot.VFs[i]
		status := VFStatus{
			VF: vf.Name, Port: vf.Port, Family: vf.Family, Healthy: vf.Healthy(), Reason: vf.Reason, Drained: vf.Drained,
			Resource: vf.Resource, Pod: vf.Holder.Pod, Held: vf.Held,
		}
		record, device := &claims.Record{}, vf.Device()
		if holder := claims.Holder(records, vf.Name, ""); holder != nil {
			status.Claim, status.UID, status.Released = holder.Title(), holder.UID, holder.Released
			record, device = holder, holder.Device(vf.Name)
		}
		status.Info = vfinfo.Of(record, device)
		all.VFs = append(all.VFs, status)
	}
	return all, nil
}

// podVFs returns the names of the VFs that a pod has by the device plugin.
func (s *Server) podVFs(ctx context.Context, namespace, name string) ([]string, error) {
	devices, err := s.Pods.Devices(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	snapshot := s.Watcher.Snapshot()
	vfs := []string{}
	for i := range snapshot.VFs {
		vf := &snapshot.VFs[i]
		if vf.Resource != "" && slices.Contains(devices[vf.Resource], vf.Name) {
			vfs = append(vfs, vf.Name)
		}
	}
	return vfs, nil
}

func report(answer http.ResponseWriter, err error) {
	if err != nil {
		http.Error(answer, err.Error(), http.StatusConflict)
	}
}
