// Package metrics serves the host's counters and the agent's own to Prometheus, and the agent's health to kubelet.
package metrics

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
)

// readTimeout bounds how long a client may take for its request.
const readTimeout = 5 * time.Second

// Server serves metrics and health.
type Server struct {
	Host    *host.Client
	Watcher *inventory.Watcher
	Admin   *admin.Server
	// Outdated returns why the host does not run the image's program, or nil; without it the agent does not update the host.
	// An update of the DaemonSet waits for readiness, so it stops at the first node whose host does not follow.
	Outdated func() error
}

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadTimeout: readTimeout}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// Handler returns the paths /healthz, /readyz and /metrics.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, "the agent runs")
	})
	mux.HandleFunc("GET /readyz", func(answer http.ResponseWriter, _ *http.Request) {
		snapshot := s.Watcher.Snapshot()
		var outdated error
		if s.Outdated != nil {
			outdated = s.Outdated()
		}
		switch {
		case !snapshot.Answered:
			http.Error(answer, "the host has not answered yet on "+s.Host.Socket(), http.StatusServiceUnavailable)
		case snapshot.Unreachable != "":
			http.Error(answer, snapshot.Unreachable, http.StatusServiceUnavailable)
		case outdated != nil:
			http.Error(answer, outdated.Error(), http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(answer, "the host answers")
		}
	})
	mux.HandleFunc("GET /metrics", func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.own(request.Context(), answer)
		// Without the host, its counters are missing and the agent's own tell why.
		if err := s.Host.Metrics(request.Context(), answer); err != nil {
			klog.FromContext(request.Context()).V(2).Info("The host's metrics are missing", "reason", err)
		}
	})
	return mux
}

// own writes the agent's metrics.
func (s *Server) own(ctx context.Context, to io.Writer) {
	reachable := 0
	if snapshot := s.Watcher.Snapshot(); snapshot.Answered && snapshot.Unreachable == "" {
		reachable = 1
	}
	fmt.Fprintf(to, "# HELP softiov_node_host_reachable 1 if the host answers the agent.\n")
	fmt.Fprintf(to, "# TYPE softiov_node_host_reachable gauge\nsoftiov_node_host_reachable %d\n", reachable)
	status, err := s.Admin.Status()
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not read the claims for metrics")
		return
	}
	fmt.Fprintf(to, "# HELP softiov_node_vf_healthy 1 if a pod can use the VF.\n# TYPE softiov_node_vf_healthy gauge\n")
	for _, vf := range status {
		healthy := 0
		if vf.Healthy {
			healthy = 1
		}
		fmt.Fprintf(to, "softiov_node_vf_healthy{port=%s,vf=%s} %d\n", strconv.Quote(vf.Port), strconv.Quote(vf.VF), healthy)
	}
	fmt.Fprintf(to, "# HELP softiov_node_vf_claim Claim that has the VF.\n# TYPE softiov_node_vf_claim gauge\n")
	for _, vf := range status {
		if vf.Claim != "" {
			fmt.Fprintf(to, "softiov_node_vf_claim{claim=%s,port=%s,vf=%s} 1\n",
				strconv.Quote(vf.Claim), strconv.Quote(vf.Port), strconv.Quote(vf.VF))
		}
	}
}
