package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cgroupTree is a mounted hierarchy of control groups.
type cgroupTree struct {
	// mount is the folder, and options are those of the mount: the controllers of version 1, empty for version 2.
	mount, options string
}

// cgroupTrees returns the hierarchies that kubelet needs: all of version 1, or the one of version 2. A hierarchy of version
// 2 beside those of version 1 has no controllers, and is left out.
func cgroupTrees() ([]cgroupTree, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var first, second []cgroupTree
	for _, line := range strings.Split(string(mounts), "\n") {
		before, after, found := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 5 || len(kind) < 3 || !strings.HasPrefix(fields[4], "/sys/fs/cgroup") {
			continue
		}
		switch kind[0] {
		case "cgroup":
			options := strings.TrimPrefix(strings.TrimPrefix(kind[2], "rw"), ",")
			first = append(first, cgroupTree{fields[4], options})
		case "cgroup2":
			second = append(second, cgroupTree{fields[4], ""})
		}
	}
	if len(first) > 0 {
		return first, nil
	}
	return second, nil
}

// makeCgroup makes a group for a node in each hierarchy, and returns the folders.
func makeCgroup(trees []cgroupTree, name string) ([]string, error) {
	var folders []string
	for _, tree := range trees {
		folder := filepath.Join(tree.mount, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		if tree.options == "" {
			if err := enableControllers(tree.mount, name); err != nil {
				return nil, err
			}
		}
		if strings.Contains(tree.options, "cpuset") {
			for parent := filepath.Dir(folder); ; parent = filepath.Dir(parent) {
				if parent == tree.mount {
					break
				}
				if err := copyCpuset(filepath.Dir(parent), parent); err != nil {
					return nil, err
				}
			}
			if err := copyCpuset(filepath.Dir(folder), folder); err != nil {
				return nil, err
			}
		}
		folders = append(folders, folder)
	}
	return folders, nil
}

// controllers are those that kubelet needs.
var controllers = []string{"cpu", "memory", "pids"}

// enableControllers lets groups of version 2 below a mount have the controllers: each group on the way to them must name
// them, from the top, because a group can give only what it has.
func enableControllers(mount, group string) error {
	enabled := []byte("+" + strings.Join(controllers, " +"))
	folder := mount
	for _, name := range append([]string{""}, strings.Split(filepath.Dir(group), "/")...) {
		folder = filepath.Join(folder, name)
		if err := os.WriteFile(filepath.Join(folder, "cgroup.subtree_control"), enabled, 0o644); err != nil {
			return fmt.Errorf("enable the controllers %q: %w", controllers, err)
		}
	}
	return nil
}

// copyCpuset gives a group of version 1 the processors of its parent; without any, no process can join.
func copyCpuset(parent, folder string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		content, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes a group of all hierarchies, with the groups in it. The processes in it have been killed, but the
// kernel may still be ending them.
func removeCgroup(trees []cgroupTree, name string) error {
	var last error
	for _, tree := range trees {
		root := filepath.Join(tree.mount, name)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if last = removeGroups(root); last == nil || time.Now().After(deadline) {
				break
			}
		}
		if last != nil {
			return last
		}
	}
	return nil
}

func removeGroups(folder string) error {
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroups(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(folder); err != nil && err != syscall.ENOENT {
		return fmt.Errorf("cannot remove the control group %s: %w", folder, err)
	}
	return nil
}

// mountCgroups replaces /sys/fs/cgroup by the hierarchies as the calling process's namespace shows them.
func mountCgroups(trees []cgroupTree) error {
	const root = "/sys/fs/cgroup"
	if len(trees) == 1 && trees[0].options == "" {
		if err := syscall.Mount("cgroup2", root, "cgroup2", 0, ""); err != nil {
			return fmt.Errorf("mount cgroup2: %w", err)
		}
		return delegate(root)
	}
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", root, err)
	}
	for _, tree := range trees {
		folder := filepath.Join(root, filepath.Base(tree.mount))
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("cgroup", folder, "cgroup", 0, tree.options); err != nil {
			return fmt.Errorf("mount the control groups of %s: %w", tree.options, err)
		}
	}
	return nil
}

// delegate moves the calling process out of the namespace's first group of version 2, and gives the controllers to the
// groups below: a group with processes cannot.
func delegate(root string) error {
	leaf := filepath.Join(root, "init")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		return err
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled := "+" + strings.Join(strings.Fields(string(controllers)), " +")
	return os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte(enabled), 0o644)
}
