// Command pause waits for a signal to end, and reaps processes whose parents have ended. It is the first process of nodes
// and of pods.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			if reaped, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || reaped <= 0 {
				break
			}
		}
	}
}
