package deviceplugin

import (
	"slices"
	"testing"

	"softiov.io/kubernetes/internal/host"
	"softiov.io/kubernetes/internal/inventory"
)

func TestVFsOfOnePortArePreferred(t *testing.T) {
	snapshot := &inventory.Snapshot{}
	for _, name := range []string{"a0", "a1", "b0", "b1", "b2"} {
		snapshot.VFs = append(snapshot.VFs, inventory.VF{VF: host.VF{Name: name}, Port: name[:1]})
	}
	for _, test := range []struct {
		name                string
		available, included []string
		size                int
		want                []string
	}{
		{"port with the most", []string{"a0", "a1", "b0", "b1", "b2"}, nil, 2, []string{"b0", "b1"}},
		{"port of the included", []string{"a0", "a1", "b0", "b1", "b2"}, []string{"a1"}, 2, []string{"a1", "a0"}},
		{"more than one port has", []string{"a0", "a1", "b0", "b1"}, nil, 3, []string{"a0", "a1", "b0"}},
		{"fewer than wanted", []string{"a0"}, nil, 2, []string{"a0"}},
		{"none", nil, nil, 0, nil},
		{"unknown devices", []string{"x", "y"}, nil, 1, []string{"x"}},
	} {
		if got := prefer(snapshot, test.available, test.included, test.size); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
