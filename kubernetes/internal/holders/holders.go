// Package holders knows the claims and pods that have VFs. A port may have changed between claims and the device plugin since,
// or its resource may have another name: kubelet and scheduler then count a VF in use as free.
package holders

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/claims"
	"softiov.io/kubernetes/internal/files"
	"softiov.io/kubernetes/internal/podresources"
)

// retryInterval is the time until the next attempt while kubelet has not reported the devices of pods.
const retryInterval = time.Second

// Holder is the claim and the pod that have a VF.
type Holder struct {
	// Claim is namespace and name of the claim whose record has the VF, and UID that of the claim; empty without one.
	Claim, UID string
	// Pod is namespace and name of the pod that has the VF by the device plugin, and Resource the extended resource; empty
	// without one.
	Pod, Resource string
}

// Report is the holders of VFs at one time.
type Report struct {
	// ByVF has the holders by the name of their VF.
	ByVF map[string]Holder
	// Unknown is true until kubelet has reported the VFs of pods, and the records of claims are complete.
	Unknown bool
	// Fault is the reason why the holders are unknown or may be those of an earlier time, or "".
	Fault string
}

// errNotAsked is the initial error, and errNotRebuilt that of incomplete records.
var (
	errNotAsked   = errors.New("kubelet has not reported the devices of pods yet")
	errNotRebuilt = errors.New("records of claims may be missing: the agent has not read the claims of the API server yet; the agent's " +
		"log has the reason")
)

// Holders knows the holders of VFs. It is safe for concurrent use.
type Holders struct {
	// Rebuilds is true if the DRA driver rebuilds missing records. Until then a VF without a record may have a claim.
	Rebuilds bool

	store *claims.Store
	pods  *podresources.Client
	// resources are the extended resources that agents of this node have offered. Devices of others may have the names of VFs.
	resources []string

	mutex sync.Mutex
	// devices are the VFs of pods by kubelet's last answer, by name.
	devices map[string]podresources.Device
	// isKnown is true after kubelet's first answer, or if no agent has offered an extended resource.
	isKnown bool
	// fault is the error of the last request to kubelet, or nil.
	fault error
	// prepared are the VFs of claims, as last read.
	prepared map[string]*claims.Record
	// records logs errors of reading them.
	records changeLog
}

// Open returns the holders of VFs. The file has the extended resources that earlier agents have offered; those of this agent
// are added to it.
func Open(path string, store *claims.Store, pods *podresources.Client, resources []string) (*Holders, error) {
	var earlier []string
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &earlier)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the resources of earlier agents from %s: %w; correct the file: it is a list of names", path, err)
	}
	all := slices.Compact(slices.Sorted(slices.Values(slices.Concat(earlier, resources))))
	if !slices.Equal(all, earlier) {
		encoded, err := json.Marshal(all)
		if err == nil {
			err = files.Write(path, append(encoded, '\n'), 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("keep the names of resources: %w", err)
		}
	}
	h := &Holders{store: store, pods: pods, resources: all, isKnown: len(all) == 0}
	if !h.isKnown {
		h.fault = errNotAsked
	}
	return h, nil
}

// Run asks kubelet in an interval until the context ends. Without an extended resource there is nothing to ask.
func (h *Holders) Run(ctx context.Context, interval time.Duration) {
	var kubelet changeLog
	for len(h.resources) > 0 {
		err := h.Refresh(ctx)
		if ctx.Err() == nil {
			kubelet.log(ctx, err, "VFs may be in use by pods of the device plugin")
		}
		pause := interval
		if err != nil {
			pause = min(interval, retryInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// changeLog logs an error when its text changes: the cause may stay for long, and one line is enough.
type changeLog struct{ last string }

// log logs the error of an attempt, unless the attempt before had the same; nil is success.
func (l *changeLog) log(ctx context.Context, err error, message string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != l.last && err != nil {
		klog.FromContext(ctx).Error(err, message)
	}
	l.last = text
}

// Refresh asks kubelet once for the VFs of pods.
func (h *Holders) Refresh(ctx context.Context) error {
	if len(h.resources) == 0 {
		return nil
	}
	all, err := h.pods.All(ctx)
	if err != nil {
		// A caller that has given up says nothing of kubelet.
		if ctx.Err() == nil {
			h.mutex.Lock()
			defer h.mutex.Unlock()
			h.fault = err
		}
		return err
	}
	devices := map[string]podresources.Device{}
	for _, device := range all {
		if slices.Contains(h.resources, device.Resource) {
			devices[device.ID] = device
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.devices, h.isKnown, h.fault = devices, true, nil
	return nil
}

// Report returns the holders by the records of claims as they are now, and by kubelet's last answer.
func (h *Holders) Report(ctx context.Context) Report {
	// Records that complete the folder later are not among those read now.
	isComplete := !h.Rebuilds || h.store.IsComplete()
	records, err := h.store.All()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	faults := []error{h.fault, err}
	if !isComplete {
		faults = append(faults, errNotRebuilt)
	}
	if err == nil {
		h.prepared = map[string]*claims.Record{}
		for _, record := range records {
			for _, device := range record.Devices {
				h.prepared[device.VF] = record
			}
		}
	}
	// Otherwise those of the last time still count.
	h.records.log(ctx, err, "Could not read the claims of VFs")
	report := Report{ByVF: map[string]Holder{}, Unknown: !h.isKnown || !isComplete || h.prepared == nil}
	if fault := errors.Join(faults...); fault != nil {
		report.Fault = fault.Error()
	}
	for vf, record := range h.prepared {
		report.ByVF[vf] = Holder{Claim: record.Title(), UID: record.UID}
	}
	for vf, device := range h.devices {
		holder := report.ByVF[vf]
		holder.Pod, holder.Resource = device.Title(), device.Resource
		report.ByVF[vf] = holder
	}
	return report
}

// Held returns the reason why a VF takes no new pods, or "". With a resource these are a claim that has the VF, or a pod by another
// resource; pods with the same resource are kubelet's to count. A VF for claims has none, and its reason is a pod that has it.
func (h Holder) Held(vf, resource string) string {
	switch {
	case resource != "" && h.Claim != "":
		return fmt.Sprintf("claim %s (%s) has VF %s, since before its port was given to %s; the VF is free when that claim's pod has "+
			"ended. If no such pod is left: softiov-node release %s", h.Claim, h.UID, vf, resource, h.UID)
	case h.Pod != "" && h.Resource != resource:
		return fmt.Sprintf("pod %s has VF %s as %s, since before its port was given to %s; the VF is free when that pod has ended: "+
			"delete the pod", h.Pod, vf, h.Resource, cmp.Or(resource, "claims"))
	}
	return ""
}
