package binding

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// serve starts a sidecar, and returns a client and the error with which the sidecar ends.
func serve(t *testing.T, s *Sidecar) (*grpc.ClientConn, <-chan error) {
	t.Helper()
	folder, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	// The socket of a sidecar that has crashed.
	if err := os.WriteFile(filepath.Join(folder, socketName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { ended <- s.Serve(ctx, folder) }()
	connection, err := grpc.NewClient("unix:"+filepath.Join(folder, socketName), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection, ended
}

// invoke calls a method of the sidecar.
func invoke(connection *grpc.ClientConn, all protoreflect.MessageDescriptors, method string, fields map[protoreflect.Name]string) (*dynamicpb.Message, error) {
	name := protoreflect.Name(method[strings.LastIndex(method, "/")+1:])
	params, result := newMessage(all, name+"Params"), newMessage(all, name+"Result")
	for field, value := range fields {
		set(params, field, protoreflect.ValueOfBytes([]byte(value)))
	}
	return result, connection.Invoke(context.Background(), method, params, result, grpc.WaitForReady(true))
}

func TestSidecarAnswersVirtLauncherUntilTheMachineEnds(t *testing.T) {
	connection, ended := serve(t, sidecar())
	info, err := invoke(connection, infoMessages, "/kubevirt.hooks.info.Info/Info", nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := info.String(); !strings.Contains(text, `"v1alpha3"`) || !strings.Contains(text, `"OnDefineDomain"`) || !strings.Contains(text, `"Shutdown"`) {
		t.Error(text)
	}
	const callbacks = "/kubevirt.hooks.v1alpha3.Callbacks/"
	defined, err := invoke(connection, callbackMessages, callbacks+"OnDefineDomain",
		map[protoreflect.Name]string{"domainXML": plain, "vmi": machine})
	if err != nil || !strings.Contains(string(bytesOf(defined, "domainXML")), "vfio-user-pci") {
		t.Errorf("%v, %v", defined, err)
	}
	_, err = invoke(connection, callbackMessages, callbacks+"OnDefineDomain", map[protoreflect.Name]string{"domainXML": plain, "vmi": "{}"})
	if err == nil || !strings.Contains(err.Error(), "binding softiov: the virtual machine has no interface with this binding") {
		t.Error(err)
	}
	seed, err := invoke(connection, callbackMessages, callbacks+"PreCloudInitIso", map[protoreflect.Name]string{"cloudInitData": "{}"})
	if err != nil || string(bytesOf(seed, "cloudInitData")) != "{}" {
		t.Errorf("%v, %v", seed, err)
	}
	if _, err := invoke(connection, callbackMessages, callbacks+"Shutdown", nil); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the sidecar ended with an error: %v", err)
	}
}

func TestSidecarOutsideOfKubeVirtSaysSo(t *testing.T) {
	if err := sidecar().Serve(context.Background(), "/nonexistent"); err == nil || !strings.Contains(err.Error(), "sidecar of KubeVirt") {
		t.Error(err)
	}
}
