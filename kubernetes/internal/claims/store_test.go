package claims

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"softiov.io/kubernetes/internal/host"
)

func record(uid string) *Record {
	return &Record{UID: uid, Namespace: "default", Name: "nic", Devices: []Device{{
		VF: "pf0vf1", Pool: "node-1", Folder: "/run/softiov/pf0vf1", Socket: "/run/softiov/pf0vf1/vf.sock",
		Requests: []string{"nic"}, Settings: host.Settings{"vlan": json.RawMessage("100")},
	}}}
}

func open(t *testing.T, folder string) *Store {
	t.Helper()
	store, err := OpenStore(folder)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestRecordOutlivesTheProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "claims")
	if err := open(t, folder).Put(record("a-1")); err != nil {
		t.Fatal(err)
	}
	store := open(t, folder)
	got, err := store.Get("a-1")
	want := record("a-1")
	want.Version = version
	// The file is indented, which raw values keep.
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := store.Delete("a-1"); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get("a-1"); got != nil || err != nil {
		t.Errorf("after the removal: %v, %v", got, err)
	}
	if err := store.Delete("a-1"); err != nil {
		t.Errorf("second removal: %v", err)
	}
}

func TestLeftoversOfACrashAreRemoved(t *testing.T) {
	folder := t.TempDir()
	half := filepath.Join(folder, "a-1.json.123.tmp")
	if err := os.WriteFile(half, []byte(`{"ver`), 0o600); err != nil {
		t.Fatal(err)
	}
	store := open(t, folder)
	if _, err := os.Stat(half); !os.IsNotExist(err) || len(store.Damaged) != 0 {
		t.Errorf("%v, %v", err, store.Damaged)
	}
}

func TestDamagedRecordIsSetAsideAtTheStartOnly(t *testing.T) {
	for name, content := range map[string]string{
		"empty":           "",
		"cut":             `{"version":1,"uid":"a-1"`,
		"newer version":   `{"version":2,"uid":"a-1"}`,
		"another's claim": `{"version":1,"uid":"b-2"}`,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			store := open(t, folder)
			if store.IsComplete() || store.SetComplete() != nil || !store.IsComplete() {
				t.Error("a new folder counts as complete, or cannot become it")
			}
			path := filepath.Join(folder, "a-1.json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			// While the agent runs, an unreadable record must not free its VF.
			if _, err := store.All(); err == nil || !strings.Contains(err.Error(), "restart the agent") {
				t.Errorf("All: %v", err)
			}
			if _, err := store.Get("a-1"); err == nil || !strings.Contains(err.Error(), "restart the agent") {
				t.Errorf("Get: %v", err)
			}
			next := open(t, folder)
			if records, err := next.All(); len(next.Damaged) != 1 || len(records) != 0 || err != nil || next.IsComplete() {
				t.Errorf("damaged %v, records %v, %v", next.Damaged, records, err)
			}
			if _, err := os.Stat(path + ".damaged"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A crash between both steps, here an error of the second, must not leave a folder that counts as complete.
func TestFolderIsIncompleteBeforeARecordIsSetAside(t *testing.T) {
	folder := t.TempDir()
	if err := open(t, folder).SetComplete(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "a-1.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "a-1.json.damaged"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(folder); err == nil {
		t.Fatal("the record is set aside in the place of a folder")
	}
	if _, err := os.Stat(filepath.Join(folder, marker)); !os.IsNotExist(err) {
		t.Errorf("the folder counts as complete: %v", err)
	}
}

func TestUIDCannotLeaveTheFolder(t *testing.T) {
	store := open(t, t.TempDir())
	for _, uid := range []string{"", "..", "../x", "a/b", "a\x00", strings.Repeat("a", 65)} {
		if _, err := store.Get(uid); err == nil {
			t.Errorf("Get(%q) returns no error", uid)
		}
		if err := store.Put(&Record{UID: uid}); err == nil {
			t.Errorf("Put(%q) returns no error", uid)
		}
	}
}

func TestHolderIsAnotherClaimWithTheVF(t *testing.T) {
	records := []*Record{record("a-1"), {UID: "b-2", Devices: []Device{{VF: "pf0vf2"}}}}
	for _, test := range []struct{ vf, except, want string }{
		{"pf0vf1", "b-2", "a-1"}, {"pf0vf1", "a-1", ""}, {"pf0vf2", "a-1", "b-2"}, {"pf0vf3", "", ""},
	} {
		got := ""
		if holder := Holder(records, test.vf, test.except); holder != nil {
			got = holder.UID
		}
		if got != test.want {
			t.Errorf("holder of %s besides %s is %q, want %q", test.vf, test.except, got, test.want)
		}
	}
}
