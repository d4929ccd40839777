package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// cluster is the cluster of all tests of this package.
var cluster *testCluster

// Variables that `cargo xtask test --only kubernetes` sets: the archives of the image that users build and of its next
// version, static programs with an embedded guest and with a virtual machine, the folder with the machine's QEMU and kernel,
// empty if there is none, and a folder for the cluster's programs and logs.
const (
	imageVariable        = "SOFTIOV_IMAGE"
	nextImageVariable    = "SOFTIOV_NEXT_IMAGE"
	guestVariable        = "SOFTIOV_GUEST_PROGRAM"
	machineVariable      = "SOFTIOV_MACHINE_PROGRAM"
	machineFilesVariable = "SOFTIOV_MACHINE_FILES"
	outputVariable       = "SOFTIOV_CLUSTER_OUTPUT"
)

// Names of the images. The tests update the host from one tag to the other.
const (
	repository   = "localhost/softiov"
	firstTag     = "test"
	secondTag    = "next"
	pauseImage   = "localhost/pause:test"
	guestImage   = "localhost/guest:test"
	machineImage = "localhost/machine:test"
)

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Println(err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (int, error) {
	switch os.Getenv(role) {
	case "node":
		return 1, becomeNode()
	case "cluster":
		return runInCluster(m)
	case "cleaner":
		return 0, clean(os.Getenv(folderVariable))
	}
	if reason := obstacle(); reason != "" {
		fmt.Printf("SKIPPED: tests in a Kubernetes cluster: %s\n", reason)
		return 0, nil
	}
	files := []string{os.Getenv(imageVariable), os.Getenv(nextImageVariable), os.Getenv(guestVariable), os.Getenv(machineVariable)}
	if slices.Contains(files, "") {
		fmt.Println("SKIPPED: tests in a Kubernetes cluster: no image; run cargo xtask test --only kubernetes")
		return 0, nil
	}
	return runOutside()
}

// runOutside builds what the cluster needs, and runs the tests in namespaces of their own.
func runOutside() (status int, err error) {
	here := os.Getenv(outputVariable)
	if here == "" {
		here = "../../target/kubernetes"
	}
	if here, err = filepath.Abs(here); err != nil {
		return 0, err
	}
	programs := filepath.Join(here, "bin")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		return 0, err
	}
	if reason := fetchRunc(programs); reason != nil {
		fmt.Printf("SKIPPED: tests in a Kubernetes cluster: %v\n", reason)
		return 0, nil
	}
	if err := buildPrograms(programs); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp(here, "run-")
	if err != nil {
		return 0, err
	}
	cleaner, err := startCleaner(folder)
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(folder))
	}
	defer func() { err = errors.Join(err, cleaner.finish()) }()
	if err := prepareImages(folder, programs); err != nil {
		return 0, err
	}
	return isolate(folder)
}

// testImages returns the images of one program each: tag, path of the program in the image, and its file.
func testImages(programs string) [][3]string {
	return [][3]string{
		{pauseImage, "/pause", filepath.Join(programs, "pause")},
		{guestImage, "/guest", os.Getenv(guestVariable)},
		{machineImage, "/boot", os.Getenv(machineVariable)},
	}
}

// prepareImages writes the archives of the images that the nodes need.
func prepareImages(folder, programs string) error {
	for number, image := range testImages(programs) {
		if err := buildImage(imageArchive(folder, number), image[0], image[1], image[2]); err != nil {
			return err
		}
	}
	return nil
}

// imageArchive returns the archive of one of the test's images.
func imageArchive(folder string, number int) string {
	return filepath.Join(folder, fmt.Sprintf("image%d.tar", number))
}

func runInCluster(m *testing.M) (int, error) {
	folder := os.Getenv(folderVariable)
	programs := filepath.Join(filepath.Dir(folder), "bin")
	images := []string{os.Getenv(imageVariable), os.Getenv(nextImageVariable)}
	for number := range testImages(programs) {
		images = append(images, imageArchive(folder, number))
	}
	var err error
	cluster, err = startCluster(folder, programs, images)
	if err == nil {
		err = install(cluster)
	}
	if err != nil {
		return 1, fmt.Errorf("the cluster does not start: %w\n%s", err, cluster.report())
	}
	status := m.Run()
	_, err = cluster.typeGuide("helm uninstall", nil)
	return status, err
}
