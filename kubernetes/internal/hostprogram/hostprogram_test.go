package hostprogram

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/sockettest"
)

// errCrash ends an attempt between two steps.
var errCrash = errors.New("the agent was killed")

// node is a node with a host that refuses programs whose text begins with "bad".
type node struct {
	t              *testing.T
	folder, images string
	client         *host.Client
	// ran are the programs of which the host ran.
	ran map[string]bool
}

// newNode returns a node on which the program "old" is installed and runs.
func newNode(t *testing.T) *node {
	t.Helper()
	n := newEmptyNode(t)
	if err := errors.Join(os.Mkdir(n.folder, 0o755), os.WriteFile(filepath.Join(n.folder, Name), []byte("old"), 0o755)); err != nil {
		t.Fatal(err)
	}
	n.keep()
	return n
}

// newEmptyNode returns a node without the folder of programs.
func newEmptyNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, folder: filepath.Join(t.TempDir(), "host"), images: t.TempDir(), ran: map[string]bool{}}
	n.client = host.NewClient(sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		if program := n.installed(); !strings.HasPrefix(program, "bad") {
			n.ran[program] = true
			return
		}
		answer.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(answer).Encode(host.Problem{Title: "the program does not start"})
	}))
	return n
}

// keep starts a host of the installed program as a keeper does, and returns the program, or "" without one.
func (n *node) keep() string {
	program := n.installed()
	if program != "" && !strings.HasPrefix(program, "bad") {
		n.ran[program] = true
	}
	return program
}

// installed returns the text of the program from which the keeper starts hosts, or "".
func (n *node) installed() string {
	content, err := os.ReadFile(filepath.Join(n.folder, Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.t.Fatal(err)
	}
	return string(content)
}

// files returns the names of the node's files.
func (n *node) files() string {
	entries, err := os.ReadDir(n.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		n.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

// attempt starts an agent of an image, and kills it after some steps.
func (n *node) attempt(image string, steps int) error {
	n.t.Helper()
	source := filepath.Join(n.images, image)
	if err := os.WriteFile(source, []byte(image), 0o755); err != nil {
		n.t.Fatal(err)
	}
	updater := NewUpdater(source, n.folder, n.client)
	updater.perform = func(all []step) error {
		for _, do := range all {
			if steps == 0 {
				return errCrash
			}
			steps--
			if err := do(); err != nil {
				return err
			}
		}
		return nil
	}
	return updater.update(n.t.Context())
}

// all is more steps than an attempt has.
const all = 99

func TestUpdateIsSafeAgainstACrashBetweenAnyTwoSteps(t *testing.T) {
	for _, images := range [][2]string{{"new", "new"}, {"new", "bad"}, {"bad", "bad"}, {"bad", "bad-too"}, {"bad", "new"}, {"bad", "old"}} {
		crashed, next := images[0], images[1]
		t.Run(crashed+" then "+next, func(t *testing.T) {
			t.Parallel()
			for first := range 7 {
				for second := range 7 {
					n := newNode(t)
					_ = n.attempt(crashed, first)
					_ = n.attempt(next, second)
					err := n.attempt(next, all)
					isRefused := strings.HasPrefix(next, "bad")
					if (err != nil) != isRefused {
						t.Errorf("killed after %d and %d steps: %v", first, second, err)
					}
					// The keeper must find a program that has run, and that of the image unless the host has refused it.
					if got := n.installed(); !n.ran[got] || !isRefused && got != next {
						t.Errorf("killed after %d and %d steps: %s is installed", first, second, got)
					}
					if exists(filepath.Join(n.folder, pending)) {
						t.Errorf("killed after %d and %d steps: the mark of the update stays", first, second)
					}
				}
			}
		})
	}
}

func TestFirstInstallIsSafeAgainstACrashBetweenAnyTwoSteps(t *testing.T) {
	for _, images := range [][2]string{{"new", "new"}, {"new", "newer"}, {"new", "bad"}, {"bad", "new"}} {
		crashed, next := images[0], images[1]
		t.Run(crashed+" then "+next, func(t *testing.T) {
			t.Parallel()
			stages := map[string]bool{}
			for early := range 5 {
				for late := range 7 {
					n := newEmptyNode(t)
					_ = n.attempt(crashed, early)
					kept := n.keep()
					stages[n.files()] = true
					if kept != "" && kept != crashed {
						t.Errorf("killed after %d steps: %q is installed", early, kept)
					}
					_ = n.attempt(next, late)
					err := n.attempt(next, all)
					want, isRefused := next, kept != "" && next == "bad"
					if isRefused {
						want = kept
					}
					if got := n.installed(); got != want || (err != nil) != isRefused {
						t.Errorf("killed after %d and %d steps: %s is installed, want %s; %v", early, late, got, want, err)
					}
					if files := n.files(); files != Name {
						t.Errorf("killed after %d and %d steps: the folder has %s", early, late, files)
					}
				}
			}
			// Each step of the first install was followed by a crash.
			for _, files := range []string{"", first, Name + " " + first, Name} {
				if !stages[files] {
					t.Errorf("no crash left the files %q: %v", files, stages)
				}
			}
		})
	}
}

// A host that answers so may be busy for a second, or carry out the hand-over after its answer: it then runs the new program.
func TestUpdateIsRepeatedWhileTheHostIsBusy(t *testing.T) {
	for _, kind := range []string{"busy", "unavailable", "handed-over"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			var isFree atomic.Bool
			n.client = host.NewClient(sockettest.Serve(t, func(answer http.ResponseWriter, _ *http.Request) {
				if isFree.Load() {
					return
				}
				answer.WriteHeader(http.StatusServiceUnavailable)
				_ = json.NewEncoder(answer).Encode(host.Problem{Type: "urn:softiov:problem:" + kind, Title: "try again"})
			}))
			if err := n.attempt("new", all); !host.IsUnreachable(err) {
				t.Errorf("error %v", err)
			}
			if got, want := n.files(), strings.Join([]string{Name, pending, previous}, " "); n.installed() != "new" || got != want {
				t.Errorf("%s is installed, and the folder has %s; want the new program, and %s", n.installed(), got, want)
			}
			updater := NewUpdater(filepath.Join(n.images, "new"), n.folder, n.client)
			ended := make(chan struct{})
			go func() { updater.Run(t.Context()); close(ended) }()
			for !host.IsUnreachable(updater.Outdated()) {
				select {
				case <-ended:
					t.Fatalf("the updater gives up: %v", updater.Outdated())
				case <-time.After(time.Millisecond):
				}
			}
			isFree.Store(true)
			<-ended
			if fault := updater.Outdated(); fault != nil || n.installed() != "new" || n.files() != Name {
				t.Errorf("error %v, %s is installed, and the folder has %s", fault, n.installed(), n.files())
			}
		})
	}
}
