package inventory

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/holders"
	"softiov.io/kubernetes/internal/host"
)

// numaFolder has the machine's NUMA nodes.
const numaFolder = "/sys/devices/system/node"

// patience is the number of requests of Run in a row that must fail before the VFs count as unhealthy. A host that crashes
// is back sooner, and its clients stay connected.
const patience = 3

// Snapshot is the state of all VFs at one time.
type Snapshot struct {
	// Answered is false until the host has answered for the first time.
	Answered bool
	// HoldersUnknown is true until the agent knows which claims and pods have VFs.
	HoldersUnknown bool
	// HoldersFault is the reason why the agent does not know them, or not those of now, or "".
	HoldersFault string
	// Unreachable is the reason why the host does not answer now, or "".
	Unreachable string
	// VFs are those of the last answer, in the order of the host.
	VFs []VF
}

// Complete reports whether VFs may be offered by this snapshot.
func (s *Snapshot) Complete() bool { return s.Answered && !s.HoldersUnknown }

// Find returns the VF with a name.
func (s *Snapshot) Find(name string) (VF, bool) {
	at := slices.IndexFunc(s.VFs, func(vf VF) bool { return vf.Name == name })
	if at < 0 {
		return VF{}, false
	}
	return s.VFs[at], true
}

// Watcher asks the host for its VFs in an interval, and notifies subscribers of changes.
type Watcher struct {
	client   *host.Client
	interval time.Duration
	// drained returns the names of ports and VFs that take no new pods.
	drained func() []string
	nodes   []numaNode
	// Holders knows claims and pods that have VFs; without it, no VF has a holder.
	Holders *holders.Holders
	// ResourceOf returns the extended resource of a port, or "" if its VFs are for claims; without it, all VFs are.
	ResourceOf func(port string) string

	mutex    sync.Mutex
	snapshot Snapshot
	// failures counts the failed requests of Run since the host's last answer.
	failures int
	// requests counts the requests; answered is the number of the last one with an answer.
	requests, answered uint64
	subscribers        []chan struct{}
}

// NewWatcher returns a watcher that has not asked the host yet.
func NewWatcher(client *host.Client, interval time.Duration, drained func() []string) *Watcher {
	return &Watcher{client: client, interval: interval, drained: drained, nodes: numaNodes(numaFolder)}
}

// Run asks the host until the context ends.
func (w *Watcher) Run(ctx context.Context) {
	for {
		// The snapshot has the error.
		_, _ = w.ask(ctx, true)
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.interval):
		}
	}
}

// Refresh asks the host once, and returns its answer. Its failure makes no outage: a host that starts again within a second
// would have one, if some pods start in that second.
func (w *Watcher) Refresh(ctx context.Context) (Snapshot, error) { return w.ask(ctx, false) }

// RefreshHolders asks kubelet which pods have VFs by the device plugin. The next answer of the host has them.
func (w *Watcher) RefreshHolders(ctx context.Context) error {
	if w.Holders == nil {
		return nil
	}
	return w.Holders.Refresh(ctx)
}

// ask asks the host once, publishes the result, and returns the host's answer. The caller may change it.
func (w *Watcher) ask(ctx context.Context, counted bool) (Snapshot, error) {
	number := w.number()
	ports, err := w.client.Ports(ctx)
	if ctx.Err() != nil {
		return Snapshot{}, ctx.Err()
	}
	drained := w.drained()
	var report holders.Report
	if w.Holders != nil {
		report = w.Holders.Report(ctx)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	// Results overtake each other. That of an earlier request may be older than the snapshot.
	isNewest := number > w.answered
	var next Snapshot
	if err == nil {
		next = Snapshot{Answered: true, VFs: vfs(ports, w.client.Socket(), w.nodes)}
		if isNewest {
			w.answered, w.failures = number, 0
		}
	} else {
		if isNewest && counted {
			w.failures++
		}
		next = w.withoutAnswer(err)
	}
	next.HoldersUnknown, next.HoldersFault = report.Unknown, report.Fault
	for i := range next.VFs {
		vf := &next.VFs[i]
		if w.ResourceOf != nil {
			vf.Resource = w.ResourceOf(vf.Port)
		}
		vf.Holder = report.ByVF[vf.Name]
		vf.Held = vf.Holder.Held(vf.Name, vf.Resource)
		vf.Drained = slices.Contains(drained, vf.Port) || slices.Contains(drained, vf.Name)
	}
	if isNewest {
		w.publish(ctx, next)
	}
	if err != nil {
		return Snapshot{}, err
	}
	next.VFs = slices.Clone(next.VFs)
	return next, nil
}

// number returns the number of the next request.
func (w *Watcher) number() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.requests++
	return w.requests
}

// withoutAnswer returns the snapshot after a failed request: the VFs of the last answer, unhealthy in an outage. The caller
// holds the mutex.
func (w *Watcher) withoutAnswer(err error) Snapshot {
	next := w.snapshot
	next.VFs = slices.Clone(next.VFs)
	if w.failures < patience {
		return next
	}
	next.Unreachable = err.Error()
	for i := range next.VFs {
		next.VFs[i].Reason = next.Unreachable
	}
	return next
}

// publish stores a snapshot, and notifies the subscribers if it differs from the last in more than counters. The caller
// holds the mutex.
func (w *Watcher) publish(ctx context.Context, next Snapshot) {
	last := w.snapshot
	w.snapshot = next
	if reflect.DeepEqual(last, next) {
		return
	}
	logChanges(klog.FromContext(ctx), &last, &next)
	for _, subscriber := range w.subscribers {
		select {
		case subscriber <- struct{}{}:
		default: // A notification is pending already.
		}
	}
}

// logChanges logs an outage of the host and VFs whose health changed.
func logChanges(logger klog.Logger, last, next *Snapshot) {
	if last.Unreachable == "" && next.Unreachable != "" {
		logger.Info("The host does not answer; its VFs take no new pods", "reason", next.Unreachable)
		return
	}
	if next.Unreachable != "" {
		return
	}
	if !last.Answered || last.Unreachable != "" {
		logger.Info("The host answers", "vfs", len(next.VFs))
	}
	for i := range next.VFs {
		vf := &next.VFs[i]
		before, known := last.Find(vf.Name)
		if vf.Reason != "" && (!known || before.Reason != vf.Reason) {
			logger.Info("A VF cannot be used", "vf", vf.Name, "reason", vf.Reason)
		}
		if vf.Drained != before.Drained {
			logger.Info("The drain of a VF has changed", "vf", vf.Name, "drained", vf.Drained)
		}
	}
}

// Snapshot returns the last state. The caller may change it.
func (w *Watcher) Snapshot() Snapshot {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	snapshot := w.snapshot
	snapshot.VFs = slices.Clone(snapshot.VFs)
	return snapshot
}

// Subscribe returns a channel that receives a value after each change, and at once for the present state.
func (w *Watcher) Subscribe() <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	subscriber := make(chan struct{}, 1)
	subscriber <- struct{}{}
	w.subscribers = append(w.subscribers, subscriber)
	return subscriber
}

// Unsubscribe removes a channel that Subscribe returned.
func (w *Watcher) Unsubscribe(subscriber <-chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.subscribers = slices.DeleteFunc(w.subscribers, func(one chan struct{}) bool { return one == subscriber })
}
