package deviceplugin

import (
	"slices"

	"softiov.io/kubernetes/internal/inventory"
)

// prefer returns `size` of the available VFs, those that must be included first, then VFs of their ports, then VFs of
// the ports with the most available VFs. Kubelet takes the answer as a hint.
func prefer(snapshot *inventory.Snapshot, available, included []string, size int) []string {
	port := func(id string) string {
		vf, _ := snapshot.Find(id)
		return vf.Port
	}
	free := map[string]int{}
	for _, id := range available {
		free[port(id)]++
	}
	chosen := slices.Clone(included)
	rest := slices.DeleteFunc(slices.Clone(available), func(id string) bool { return slices.Contains(included, id) })
	used := func(id string) bool {
		return slices.ContainsFunc(chosen, func(other string) bool { return port(other) == port(id) })
	}
	for len(chosen) < size && len(rest) > 0 {
		best := 0
		for at := range rest {
			candidate, leader := rest[at], rest[best]
			if used(candidate) != used(leader) {
				if used(candidate) {
					best = at
				}
				continue
			}
			if free[port(candidate)] > free[port(leader)] {
				best = at
			}
		}
		chosen = append(chosen, rest[best])
		rest = slices.Delete(rest, best, best+1)
	}
	return chosen
}
