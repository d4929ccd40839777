package podresources_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"softiov.io/kubernetes/internal/podresources"
	"softiov.io/kubernetes/internal/podresources/podresourcestest"
)

func TestDevicesAreThoseOfThePodWithNamespaceAndName(t *testing.T) {
	const resource = "softiov.io/vf"
	client := podresources.NewClient(podresourcestest.Serve(t,
		podresourcestest.Pod("default", "web", resource, []string{"pf1vf0"}, []string{"pf1vf1", "pf1vf2"}),
		podresourcestest.Pod("default", "db", resource, []string{"pf1vf3"}),
		podresourcestest.Pod("other", "web", resource, []string{"pf1vf4"}),
	))
	for _, test := range []struct {
		namespace, name string
		want            map[string][]string
	}{
		{"default", "web", map[string][]string{resource: {"pf1vf0", "pf1vf1", "pf1vf2"}}},
		{"other", "web", map[string][]string{resource: {"pf1vf4"}}},
		{"other", "db", map[string][]string{}},
	} {
		got, err := client.Devices(context.Background(), test.namespace, test.name)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s/%s: %v, %v", test.namespace, test.name, got, err)
		}
	}
}

// A pod of a StatefulSet has the name of the one before, which may still end after a deletion by force.
func TestDevicesOfTwoPodsWithOneNameAreRefused(t *testing.T) {
	client := podresources.NewClient(podresourcestest.Serve(t,
		podresourcestest.Pod("default", "web-0", "softiov.io/vf", []string{"pf1vf0"}),
		podresourcestest.Pod("default", "web-0", "softiov.io/vf", []string{"pf1vf1"}),
	))
	if got, err := client.Devices(context.Background(), "default", "web-0"); err == nil || !strings.Contains(err.Error(), "2 pods default/web-0") {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := client.All(context.Background()); err != nil || len(got) != 2 {
		t.Errorf("all devices: %v, %v", got, err)
	}
}

func TestKubeletThatDoesNotAnswerIsNamed(t *testing.T) {
	_, err := podresources.NewClient("/nonexistent/kubelet.sock").Devices(context.Background(), "default", "web")
	for _, want := range []string{"pod default/web: ", "on /nonexistent/kubelet.sock", "name its socket by --pod-resources"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
