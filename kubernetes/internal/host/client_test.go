package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"softiov.io/kubernetes/internal/sockettest"
)

// serve answers requests, and returns a client.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	return NewClient(sockettest.Serve(t, handler))
}

func problem(answer http.ResponseWriter, status int, kind, detail string) {
	answer.Header().Set("Content-Type", "application/problem+json")
	answer.WriteHeader(status)
	fmt.Fprintf(answer, `{"type":"urn:softiov:problem:%s","title":"T","status":%d,"detail":%q,"remedy":"R"}`, kind, status, detail)
}

func TestProblemOfTheHostIsTheError(t *testing.T) {
	client := serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		problem(answer, http.StatusConflict, "refused", "VLAN 300 is not allowed")
	})
	err := client.ChangeVF(context.Background(), "pf0vf1", Change{})
	if err == nil || err.Error() != "VLAN 300 is not allowed" || IsUnreachable(err) || IsNoSuchName(err) {
		t.Errorf("error %v", err)
	}
}

func TestRequestIsRepeatedDuringAHandOver(t *testing.T) {
	requests := 0
	client := serve(t, func(answer http.ResponseWriter, _ *http.Request) {
		if requests++; requests < 3 {
			problem(answer, http.StatusServiceUnavailable, "handed-over", "")
			return
		}
		fmt.Fprint(answer, `[{"name":"pf0","vfs":[{"name":"pf0vf0"}]}]`)
	})
	ports, err := client.Ports(context.Background())
	if err != nil || len(ports) != 1 || ports[0].VFs[0].Name != "pf0vf0" || requests != 3 {
		t.Errorf("%v, %v after %d requests", ports, err, requests)
	}
}

func TestMissingHostIsUnreachable(t *testing.T) {
	client := NewClient("/nonexistent/control.sock")
	_, err := client.Ports(context.Background())
	if !IsUnreachable(err) || !strings.Contains(err.Error(), "/nonexistent/control.sock") || !strings.Contains(err.Error(), "softiov serve") {
		t.Errorf("error %v", err)
	}
}

// A caller that asks for many VFs gives up at the first request without an answer, so it must recognize these requests.
func TestHostThatStopsWithinItsAnswerIsUnreachable(t *testing.T) {
	for name, status := range map[string]int{"answer": http.StatusOK, "problem": http.StatusConflict} {
		ended := make(chan struct{})
		client := serve(t, func(answer http.ResponseWriter, request *http.Request) {
			answer.WriteHeader(status)
			fmt.Fprint(answer, `[{"name":`)
			if err := http.NewResponseController(answer).Flush(); err != nil {
				t.Error(err)
			}
			if request.URL.Path != "/v1/ports" {
				panic(http.ErrAbortHandler)
			}
			<-ended
		})
		// The first request is cut off, the second one gets no end of its answer.
		if _, err := client.VF(context.Background(), "pf0vf0"); !IsUnreachable(err) {
			t.Errorf("%s: error %v", name, err)
		}
		client.http.Timeout = 50 * time.Millisecond
		if _, err := client.Ports(context.Background()); !IsUnreachable(err) {
			t.Errorf("%s: error %v", name, err)
		}
		close(ended)
	}
}

// An upgrade that is repeated pauses the guests again.
func TestUpgradeMayTakeLongerThanOtherRequests(t *testing.T) {
	ended := make(chan struct{})
	client := serve(t, func(_ http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/v1/upgrade" {
			// The other request has timed out.
			<-request.Context().Done()
			close(ended)
			return
		}
		<-ended
	})
	client.http.Timeout = 50 * time.Millisecond
	upgraded := make(chan error)
	go func() { upgraded <- client.Upgrade(context.Background()) }()
	if _, err := client.Ports(context.Background()); !IsUnreachable(err) {
		t.Errorf("error %v", err)
	}
	if err := <-upgraded; err != nil {
		t.Error(err)
	}
}

func TestNameIsOnePathSegment(t *testing.T) {
	var path string
	client := serve(t, func(answer http.ResponseWriter, request *http.Request) {
		path = request.URL.EscapedPath()
		problem(answer, http.StatusNotFound, "no-such-name", "")
	})
	if _, err := client.VF(context.Background(), "../ports?x"); !IsNoSuchName(err) || path != "/v1/vfs/..%2Fports%3Fx" {
		t.Errorf("path %s, error %v", path, err)
	}
}

func TestChangeIsSentAsJSON(t *testing.T) {
	var sent Change
	var kind string
	client := serve(t, func(answer http.ResponseWriter, request *http.Request) {
		kind = request.Header.Get("Content-Type")
		if err := json.NewDecoder(request.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		fmt.Fprint(answer, "{}")
	})
	if err := client.ChangeVF(context.Background(), "pf0vf1", Change{Default: []string{"vlan"}}); err != nil {
		t.Fatal(err)
	}
	if kind != "application/json" || sent.Set == nil || len(sent.Default) != 1 {
		t.Errorf("%s %+v", kind, sent)
	}
}

func TestAnswerThatIsNoProblemHasItsStatus(t *testing.T) {
	client := serve(t, func(answer http.ResponseWriter, _ *http.Request) { answer.WriteHeader(http.StatusBadGateway) })
	if _, err := client.Ports(context.Background()); err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("error %v", err)
	}
}

// The kernel refuses a client for which a socket's queue has no room. A host that hands over accepts none for a moment.
func TestFullQueueOfTheSocketIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	first, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := net.Dial("unix", path); !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("the queue has room: %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := NewClient(path).Ports(context.Background())
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("the client has not waited: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go http.Serve(listener, http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(answer, `[]`)
	}))
	if err := <-done; err != nil {
		t.Error(err)
	}
}
