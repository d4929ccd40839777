package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/hostprogram"
)

// updatedHost is a host whose keeper starts the program of a folder, and a client that is connected to one of its VFs.
type updatedHost struct {
	*testHost
	bin    string
	client net.Conn
	// stopUpdater ends the updater of the image before.
	stopUpdater func()
}

func startUpdatedHost(t *testing.T) *updatedHost {
	t.Helper()
	folder := shortFolder(t)
	bin := filepath.Join(folder, "bin")
	if err := hostprogram.InstallMissing(realHost(t), bin); err != nil {
		t.Fatal(err)
	}
	h := &updatedHost{testHost: startHostOf(t, folder, filepath.Join(bin, hostprogram.Name)), bin: bin}
	client, err := net.Dial("unix", filepath.Join(folder, "rt/pf0vf0/vf.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	h.client = client
	return h
}

// image returns a program of another image: the same one with other bytes behind it, or a file that is no program.
func (h *updatedHost) image(name string, runs bool) string {
	h.t.Helper()
	content, err := os.ReadFile(realHost(h.t))
	if err != nil {
		h.t.Fatal(err)
	}
	if !runs {
		content = nil
	}
	path := filepath.Join(h.folder, name)
	if err := os.WriteFile(path, append(content, name...), 0o755); err != nil {
		h.t.Fatal(err)
	}
	return path
}

// running returns the process of the host, the keeper's child with the program's name.
func (h *updatedHost) running() int {
	h.t.Helper()
	keeper := h.process.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", keeper, keeper))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, field := range strings.Fields(string(children)) {
		var child int
		_, _ = fmt.Sscan(field, &child)
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child)); string(name) == hostprogram.Name+"\n" {
			return child
		}
	}
	return 0
}

// runs returns whether the host's process is of a program with these bytes.
func (h *updatedHost) runs(program string) bool {
	h.t.Helper()
	want, err := os.ReadFile(program)
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := os.ReadFile(fmt.Sprintf("/proc/%d/exe", h.running()))
	return err == nil && bytes.Equal(got, want)
}

// keepsItsClient fails the test if the host has ended the client's connection.
func (h *updatedHost) keepsItsClient() {
	h.t.Helper()
	_ = h.client.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := h.client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		h.t.Errorf("the host has ended the connection of its client: %v", err)
	}
}

// update runs the updater of an image instead of the one before, as an update of the DaemonSet does.
func (h *updatedHost) update(source string) *hostprogram.Updater {
	h.t.Helper()
	if h.stopUpdater != nil {
		h.stopUpdater()
	}
	updater := hostprogram.NewUpdater(source, h.bin, h.testHost.client)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { updater.Run(ctx); close(ended) }()
	h.stopUpdater = func() { stop(); <-ended }
	h.t.Cleanup(h.stopUpdater)
	return updater
}

func TestAgentOfANewImageReplacesTheHost(t *testing.T) {
	h := startUpdatedHost(t)
	next := h.image("next", true)
	// A pod of the host with another image brings no program.
	if err := hostprogram.InstallMissing(next, h.bin); err != nil || !h.runs(realHost(t)) {
		t.Fatalf("the first program is not the node's: %v", err)
	}
	agent := startAgent(t, h.folder, newKube())
	agent.stop()
	agent.config.hostProgram, agent.config.hostProgramFolder = next, h.bin
	agent.start()
	eventually(t, "a host of the new program takes over", func() bool { return h.runs(next) })
	h.keepsItsClient()
	// The next agent of this image has nothing to do.
	agent.stop()
	before := h.running()
	updater := h.update(next)
	eventually(t, "the agent is ready", func() bool { return updater.Outdated() == nil })
	if now := h.running(); now != before {
		t.Errorf("process %d has taken over from %d without a reason", now, before)
	}
}

func TestProgramThatDoesNotRunLeavesTheHostAndIsNotReady(t *testing.T) {
	h := startUpdatedHost(t)
	before := h.running()
	updater := h.update(h.image("broken", false))
	eventually(t, "the agent says why the host is not updated", func() bool {
		fault := updater.Outdated()
		return fault != nil && strings.Contains(fault.Error(), "replace the running host: ")
	})
	if now := h.running(); now != before || !h.runs(realHost(t)) {
		t.Errorf("process %d has taken over from %d", now, before)
	}
	h.keepsItsClient()
	// A host that dies now starts again from the program before.
	installed, err := os.ReadFile(filepath.Join(h.bin, hostprogram.Name))
	if err != nil || bytes.HasSuffix(installed, []byte("broken")) {
		t.Errorf("the program that does not run stays installed: %v", err)
	}
	// The administrator goes back to an image that runs.
	repaired := h.update(h.image("repaired", true))
	eventually(t, "a host of the right program takes over", func() bool { return repaired.Outdated() == nil && h.running() != before })
	h.keepsItsClient()
}

// A crash of the agent between two steps of the update.
func TestUpdateContinuesAfterACrashOfTheAgent(t *testing.T) {
	h := startUpdatedHost(t)
	before := h.running()
	if err := os.WriteFile(filepath.Join(h.bin, "softiov.pending"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	updater := h.update(realHost(t))
	eventually(t, "the host is replaced", func() bool { return updater.Outdated() == nil && h.running() != before })
	h.keepsItsClient()
}
