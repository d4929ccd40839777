package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// testMain is the variable by which a test runs the program itself.
const testMain = "TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(testMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Kubelet ends a pod's containers by SIGTERM.
func TestSidecarEndsWithItsPod(t *testing.T) {
	t.Parallel()
	folder := shortFolder(t)
	sidecar := exec.Command(os.Args[0], "binding", "--hooks-dir", folder)
	sidecar.Env, sidecar.Stderr = []string{testMain + "=1"}, os.Stderr
	if err := sidecar.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sidecar.Process.Kill() })
	socket := filepath.Join(folder, "softiov.sock")
	eventually(t, "the sidecar listens", func() bool {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			// A client that says nothing must not hold the sidecar.
			t.Cleanup(func() { connection.Close() })
		}
		return err == nil
	})
	if err := sidecar.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := sidecar.Wait(); err != nil {
		t.Errorf("the sidecar ended with an error: %v", err)
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the sidecar left its socket: %v", err)
	}
}
