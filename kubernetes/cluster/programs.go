// Package cluster tests host and node agent in a real Kubernetes cluster: etcd, API server, scheduler, controller manager,
// two nodes with kubelet, containerd and runc, all built from Go modules, in namespaces of their own. The cluster needs
// neither a container daemon nor the network, once the modules are in Go's cache.
package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubernetesModule is the module of which the programs report the version.
const kubernetesModule = "k8s.io/kubernetes"

// buildPrograms builds the tools of go.mod, and the pause program, into a folder. It prints each package that Go compiles.
func buildPrograms(folder string) error {
	version, err := output("go", "list", "-m", "-f", "{{.Version}}", kubernetesModule)
	if err != nil {
		return err
	}
	tools, err := output("go", "list", "tool")
	if err != nil {
		return err
	}
	// Without a version kubelet and kubectl would not know which API they have.
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const variable = " -X k8s.io/component-base/version.git"
	linker := "-s -w" + variable + "Version=" + version + variable + "Major=" + major + variable + "Minor=" + minor
	fmt.Println("building the cluster's programs")
	words := append([]string{"build", "-v", "-trimpath", "-tags", "no_btrfs,no_zfs", "-ldflags", linker, "-o", folder + "/", "./pause"}, strings.Fields(tools)...)
	command := exec.Command("go", words...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stdout, os.Stdout
	if err := command.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// fetchRunc unpacks runc of the Debian package into the folder, unless it is there. The Go module alone would need the
// headers of libseccomp. The machine's own packages do not change. Returns an error if the package cannot be downloaded, or
// its program does not run.
func fetchRunc(folder string) error {
	program := filepath.Join(folder, "runc")
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	unpacked, err := os.MkdirTemp(folder, "debian-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(unpacked)
	fmt.Println("fetching the Debian package runc")
	download := exec.Command("apt-get", "download", "runc")
	download.Dir = unpacked
	if text, err := download.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download runc: %w: %s", err, text)
	}
	packages, err := filepath.Glob(filepath.Join(unpacked, "*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("apt-get has downloaded %q instead of one package", packages)
	}
	if _, err := output("dpkg-deb", "--extract", packages[0], unpacked); err != nil {
		return err
	}
	fetched := filepath.Join(unpacked, "usr/sbin/runc")
	if _, err := output(fetched, "--version"); err != nil {
		return fmt.Errorf("runc of the Debian package does not run: %w", err)
	}
	return os.Rename(fetched, program)
}

// buildImage writes an image of one static program to an archive.
func buildImage(archive, tag, path, program string) error {
	command := exec.Command("go", "run", "./image", "--out", archive, "--tag", tag, "--entrypoint", path, path+"="+program)
	command.Dir = filepath.Join("..", "tools")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("image %s: %w: %s", tag, err, text)
	}
	return nil
}

// output runs a program, and returns what it prints on standard output.
func output(program string, arguments ...string) (string, error) {
	return outputOf(exec.Command(program, arguments...))
}

// outputOf runs a command, and returns what it prints on standard output.
func outputOf(command *exec.Cmd) (string, error) {
	text, err := command.Output()
	if err != nil {
		var faults []byte
		if ended, is := err.(*exec.ExitError); is {
			faults = ended.Stderr
		}
		return "", fmt.Errorf("%s: %w: %s%s", strings.Join(command.Args, " "), err, text, faults)
	}
	return strings.TrimSpace(string(text)), nil
}
