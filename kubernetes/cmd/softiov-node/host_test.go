package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/host"
)

// hostProgram is the variable with the path of the softiov command, for tests with a real host.
const hostProgram = "SOFTIOV_HOST_PROGRAM"

// hostConfig has three ports: VFs of two families for claims, and of the third for the device plugin.
const hostConfig = `
runtime_dir = %q
state_dir = %q

[[port]]
vfs = 4
[[port.vf]]
index = 1
vlans = "10,20,100-199"
[[port.vf]]
index = 2
vlan = 30

[[port]]
family = "avf"
vfs = 2

[[port]]
family = "virtio"
vfs = 2
`

// testHost is a real host in a folder of its own.
type testHost struct {
	t       *testing.T
	folder  string
	program string
	process *exec.Cmd
	client  *host.Client
}

// realHost returns the path of the softiov command, or skips the test if it is not given.
func realHost(t *testing.T) string {
	t.Helper()
	program := os.Getenv(hostProgram)
	if program == "" {
		t.Skipf("SKIPPED: test with a real host: %s does not name the softiov command", hostProgram)
	}
	return program
}

// startHost starts a host, or skips the test if the program is not given.
func startHost(t *testing.T, folder string) *testHost {
	t.Helper()
	return startHostOf(t, folder, realHost(t))
}

// startHostOf starts a host of a program.
func startHostOf(t *testing.T, folder, program string) *testHost {
	t.Helper()
	h := &testHost{t: t, folder: folder, program: program, client: host.NewClient(filepath.Join(folder, "rt/control/control.sock"))}
	config := fmt.Sprintf(hostConfig, filepath.Join(folder, "rt"), filepath.Join(folder, "hs"))
	if err := os.WriteFile(filepath.Join(folder, "softiov.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(h.stop)
	return h
}

// start starts the process, and waits until it answers.
func (h *testHost) start() {
	h.t.Helper()
	log, err := os.OpenFile(filepath.Join(h.folder, "host.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.process = exec.Command(h.program, "serve", "--config", filepath.Join(h.folder, "softiov.toml"))
	h.process.Stdout, h.process.Stderr = log, log
	if err := h.process.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if content, err := os.ReadFile(log.Name()); h.t.Failed() && err == nil {
			h.t.Logf("the host's log:\n%s", content)
		}
	})
	eventually(h.t, "the host answers", func() bool {
		_, err := h.client.Ports(context.Background())
		return err == nil
	})
}

// stop ends the host in the orderly way.
func (h *testHost) stop() {
	if h.process == nil {
		return
	}
	_ = h.process.Process.Signal(os.Interrupt)
	_ = h.process.Wait()
	h.process = nil
}

// forget removes what the host keeps on the disk.
func (h *testHost) forget() {
	if err := os.RemoveAll(filepath.Join(h.folder, "hs")); err != nil {
		h.t.Fatal(err)
	}
}

// setting returns a setting of a VF in force, as JSON.
func (h *testHost) setting(vf, name string) string {
	h.t.Helper()
	status, err := h.client.VF(context.Background(), vf)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(status.Settings[name])
}

// eventually waits until a condition holds, and fails the test after a time that no machine needs.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("it did not happen: %s", what)
}

// shortFolder returns a folder with a path that is short enough for sockets in it.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	for _, name := range []string{"registry", "plugins", "devices", "cdi"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
