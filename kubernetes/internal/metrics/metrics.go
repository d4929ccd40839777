// Package metrics serves the host's counters and the agent's own to Prometheus, and the agent's health to kubelet.
package metrics

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
	"softiov.io/kubernetes/internal/serve"
)

const (
	// answerAge is the time for which all scrapes get the same answer. The port is open to every pod of the cluster, and the
	// host keeps few control clients, of which the agent's own requests are some.
	answerAge = time.Second
	// writeTimeout bounds a request. The host has ten seconds for its answer.
	writeTimeout = 15 * time.Second
)

// Server serves metrics and health.
type Server struct {
	Host    *host.Client
	Watcher *inventory.Watcher
	Admin   *admin.Server
	// Outdated returns why the host does not run the image's program, or nil; without it the agent does not update the host.
	// An update of the DaemonSet waits for readiness, so it stops at the first node whose host does not follow.
	Outdated func() error

	// mutex lets one scrape at a time ask the host. As many others can wait as there are connections.
	mutex  sync.Mutex
	answer []byte
	// asked is the time when the host gave the answer or failed to.
	asked time.Time
}

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return serve.HTTP(ctx, listener, s.Handler(), writeTimeout)
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
		case snapshot.HoldersUnknown:
			http.Error(answer, snapshot.HoldersFault, http.StatusServiceUnavailable)
		case outdated != nil:
			http.Error(answer, outdated.Error(), http.StatusServiceUnavailable)
		default:
			fmt.Fprintln(answer, "the host answers")
		}
	})
	mux.HandleFunc("GET /metrics", func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "text/plain; version=0.0.4")
		// A client that leaves must not cut the answer that others share.
		if _, err := answer.Write(s.scrape(context.WithoutCancel(request.Context()))); err != nil {
			klog.FromContext(request.Context()).V(2).Info("A scrape has ended early", "reason", err)
		}
	})
	return mux
}

// scrape returns the metrics of the agent and the host, of the last second.
func (s *Server) scrape(ctx context.Context) []byte {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if time.Since(s.asked) < answerAge {
		return s.answer
	}
	var answer, counters bytes.Buffer
	s.own(ctx, &answer)
	if err := s.Host.Metrics(ctx, &counters); err == nil {
		answer.Write(counters.Bytes())
	} else {
		// The host's counters are missing, and the agent's own metrics show the reason.
		klog.FromContext(ctx).V(2).Info("The host's metrics are missing", "reason", err)
	}
	s.answer, s.asked = answer.Bytes(), time.Now()
	return s.answer
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
	for _, vf := range status.VFs {
		healthy := 0
		if vf.Healthy {
			healthy = 1
		}
		fmt.Fprintf(to, "softiov_node_vf_healthy{port=%s,vf=%s} %d\n", strconv.Quote(vf.Port), strconv.Quote(vf.VF), healthy)
	}
	fmt.Fprintf(to, "# HELP softiov_node_vf_claim Claim that has the VF.\n# TYPE softiov_node_vf_claim gauge\n")
	for _, vf := range status.VFs {
		if vf.Claim != "" {
			fmt.Fprintf(to, "softiov_node_vf_claim{claim=%s,port=%s,vf=%s} 1\n",
				strconv.Quote(vf.Claim), strconv.Quote(vf.Port), strconv.Quote(vf.VF))
		}
	}
}
