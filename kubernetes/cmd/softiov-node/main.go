// Command softiov-node gives the VFs of a SoftIOV host on this node to pods: by claims (DRA) and by a device plugin.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/binding"
	"softiov.io/kubernetes/internal/cni"
	"softiov.io/kubernetes/internal/hostprogram"
)

const usage = `softiov-node gives the VFs of a SoftIOV host to pods of this node.

  softiov-node [run] [OPTIONS]      run the agent
  softiov-node status               print VFs and claims of the running agent
  softiov-node drain NAME...        let ports or VFs take no new pods
  softiov-node undrain NAME...      let them take new pods again
  softiov-node release UID...       release claims that kubelet has forgotten
  softiov-node install-cni FOLDER   copy this program into a folder of CNI plugins, as softiov-cni
  softiov-node install-host FOLDER  copy the host's program into a folder, unless it has one
  softiov-node binding              answer KubeVirt as a network binding plugin, in a sidecar

Options of the agent; status and the other commands need --state if the agent has it:
`

func main() {
	// A caller of CNI plugins gives no arguments, and the command in a variable.
	if len(os.Args) == 1 && os.Getenv(cni.CommandVariable) != "" {
		os.Exit(cni.Main())
	}
	klog.InitFlags(nil)
	config := flags(flag.CommandLine)
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	arguments := os.Args[1:]
	command := "run"
	if len(arguments) > 0 && arguments[0] != "" && arguments[0][0] != '-' {
		command, arguments = arguments[0], arguments[1:]
	}
	// The set of flags ends the program on an error.
	_ = flag.CommandLine.Parse(arguments)
	defer klog.Flush()
	if err := execute(command, config, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "softiov-node:", err)
		klog.Flush()
		os.Exit(1)
	}
}

// execute runs one command.
func execute(command string, config *config, names []string) error {
	client := admin.NewClient(filepath.Join(config.state, admin.SocketName))
	each := func(do func(string) error) error {
		if len(names) == 0 {
			return fmt.Errorf("%s needs at least one name: softiov-node --help", command)
		}
		var faults []error
		for _, name := range names {
			faults = append(faults, do(name))
		}
		return errors.Join(faults...)
	}
	switch command {
	case "run":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		return run(ctx, config)
	case "binding":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		sidecar := &binding.Sidecar{
			Name: cmp.Or(os.Getenv(binding.NameVariable), binding.DefaultName), Environment: os.Environ(), NetworkInfo: config.networkInfo,
		}
		return sidecar.Serve(ctx, config.hooks)
	case "status":
		status, err := client.Status()
		if err != nil {
			return err
		}
		return admin.Print(os.Stdout, status)
	case "install-cni":
		return each(cni.Install)
	case "install-host":
		return each(func(folder string) error { return hostprogram.InstallMissing(config.hostProgram, folder) })
	case "drain":
		return each(client.Drain)
	case "undrain":
		return each(client.Undrain)
	case "release":
		return each(client.Release)
	}
	return fmt.Errorf("unknown command %q: softiov-node --help", command)
}
