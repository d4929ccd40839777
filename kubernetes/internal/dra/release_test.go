package dra

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/host/hosttest"
)

// addressInUse refuses all changes of VFs, as a host refuses an address that another VF has by now.
func addressInUse(method, _ string) *host.Problem {
	if method != http.MethodPatch {
		return nil
	}
	return &host.Problem{Status: http.StatusConflict, Detail: "MAC address 02:00:00:00:00:01 is in use by VF 1; choose another address"}
}

func TestPodEndsAlthoughTheHostRefuses(t *testing.T) {
	b := newBench(t, []string{"pf0vf0"})
	claim, next := newClaim("first", `"max_tx_rate":500`, "pf0vf0"), newClaim("next", "", "pf0vf0")
	b.mustPrepare(claim)
	b.host.Refuse(addressInUse)
	if err := b.unprepare(claim); err != nil {
		t.Errorf("the pod cannot end: %v", err)
	}
	if record := b.record(claim); record == nil || !record.Released {
		t.Fatalf("the release is not on the disk: %+v", record)
	}
	// Both the next claim and the administrator learn the reason.
	for what, err := range map[string]error{"prepare": b.prepareOne(next), "release": b.Release(context.Background(), "first-uid")} {
		if err == nil || !strings.Contains(err.Error(), "is in use by VF 1") || !strings.Contains(err.Error(), "default/first") {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.host.Refuse(nil)
	b.repair()
	b.expect("pf0vf0", "max_tx_rate", "0")
	b.mustPrepare(next)
}

func TestReleaseByHandReportsThatTheHostIsAway(t *testing.T) {
	b := newBench(t, []string{"pf0vf0"})
	claim := newClaim("first", `"vlan":100`, "pf0vf0")
	b.mustPrepare(claim)
	b.host.Refuse(hosttest.Away)
	if err := b.Release(context.Background(), "first-uid"); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("%v", err)
	}
	if err := b.unprepare(claim); err != nil {
		t.Errorf("the pod cannot end: %v", err)
	}
	b.host.Refuse(nil)
	if err := b.Release(context.Background(), "first-uid"); err != nil {
		t.Errorf("%v", err)
	}
	b.expect("pf0vf0", "vlan", "0")
}

// fillDisk lets no file grow until the returned function is called, as on a full disk: files can be removed.
func fillDisk(t *testing.T) func() {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	set := func(limit syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}
	set(syscall.Rlimit{Cur: 0, Max: before.Max})
	free := func() { set(before) }
	t.Cleanup(free)
	return free
}

// Kubelet repeats unprepare, and nothing would free the disk if the removal of a record needed a write first.
func TestPodEndsOnAFullDisk(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1"})
	first, second := newClaim("first", `"vlan":100`, "pf0vf0"), newClaim("second", `"vlan":20`, "pf0vf1")
	b.mustPrepare(first)
	b.mustPrepare(second)
	free := fillDisk(t)
	if err := b.unprepare(first); err != nil || b.record(first) != nil {
		t.Errorf("%v, %+v", err, b.record(first))
	}
	b.expect("pf0vf0", "vlan", "0")
	// Without the host, nothing but the disk could remember the release.
	b.host.Refuse(hosttest.Away)
	if err := b.unprepare(second); err == nil {
		t.Error("the release of the second claim is lost")
	}
	free()
	if err := b.unprepare(second); err != nil || !b.record(second).Released {
		t.Errorf("%v, %+v", err, b.record(second))
	}
}

func TestEndOfAClaimKeepsWhatTheAdministratorHasSet(t *testing.T) {
	b := newBench(t, []string{"pf0vf0"})
	claim := newClaim("first", `"vlan":100,"qos":3,"max_tx_rate":500`, "pf0vf0")
	b.mustPrepare(claim)
	b.host.Set("pf0vf0", "vlan", "20", "kept")
	b.host.Set("pf0vf0", "qos", "5", "volatile")
	if err := b.unprepare(claim); err != nil {
		t.Fatal(err)
	}
	b.expect("pf0vf0", "vlan", "20 kept")
	b.expect("pf0vf0", "qos", "5 volatile")
	b.expect("pf0vf0", "max_tx_rate", "0")
}

// Reported for dra-example-driver (#240): unprepare with an unreadable record ends the driver.
func TestUnreadableRecordKeepsItsClaimOnly(t *testing.T) {
	b := newBench(t, []string{"pf0vf0", "pf0vf1"})
	damaged, sound := newClaim("damaged", `"vlan":100`, "pf0vf0"), newClaim("sound", `"vlan":20`, "pf0vf1")
	b.mustPrepare(damaged)
	b.mustPrepare(sound)
	if err := os.WriteFile(filepath.Join(b.folder, "damaged-uid.json"), []byte(`{"ver`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := b.unprepare(damaged, sound)
	if err == nil || !strings.Contains(err.Error(), "claim default/damaged: ") || !strings.Contains(err.Error(), "restart the agent") {
		t.Errorf("%v", err)
	}
	if record := b.record(sound); record != nil {
		t.Errorf("%+v", record)
	}
	b.expect("pf0vf0", "vlan", "100 kept")
	b.expect("pf0vf1", "vlan", "0")
}
