package cni

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"softiov.io/kubernetes/internal/admin"
	"softiov.io/kubernetes/internal/sockettest"
	"softiov.io/kubernetes/internal/vfinfo"
)

// Variables by which tests give the plugin's process an agent and a folder of descriptions.
const testAgent, testFolder = "TEST_AGENT", "TEST_DEVICE_INFO"

// TestMain lets the test's program be the plugin, as its caller runs it: a command in a variable, a configuration on
// standard input.
func TestMain(m *testing.M) {
	if os.Getenv(CommandVariable) != "" {
		agentSocket, deviceInfoFolder = os.Getenv(testAgent), os.Getenv(testFolder)
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// startAgent starts a server with the status of three VFs of the device plugin, of which the pod default/web has two, and of three
// VFs that no pod can have as a network.
func startAgent(t *testing.T) {
	t.Helper()
	const resource = "softiov.io/vf"
	status := []admin.VFStatus{
		{VF: "pf1vf0", Resource: resource, Healthy: true,
			Info: vfinfo.Info{VF: "pf1vf0", Protocol: vfinfo.VfioUser, Socket: "/run/softiov/pf1vf0/vf.sock", MAC: "02:00:00:00:00:01"}},
		{VF: "pf2vf0", Resource: resource, Healthy: true,
			Info: vfinfo.Info{VF: "pf2vf0", Protocol: vfinfo.VhostUser, Socket: "/run/softiov/pf2vf0/vf.sock", MAC: "02:00:00:00:00:02"}},
		{VF: "pf2vf1", Resource: resource, Healthy: true,
			Info: vfinfo.Info{VF: "pf2vf1", Protocol: vfinfo.VhostUser, Socket: "/run/softiov/pf2vf1/vf.sock", MAC: "02:00:00:00:00:03"}},
		{VF: "pf0vf0", Healthy: true},
		{VF: "pf1vf1", Resource: resource, Healthy: true, Claim: "default/nic"},
		{VF: "pf1vf2", Resource: resource, Reason: "quarantined: spoofing"},
	}
	answers := map[string]any{
		"/status": admin.Status{VFs: status}, "/pods/default/web": []string{"pf1vf0", "pf2vf0"}, "/pods/other/web": []string{"pf2vf1"},
	}
	socket := sockettest.Serve(t, func(answer http.ResponseWriter, request *http.Request) {
		body, known := answers[request.URL.Path]
		if !known {
			http.Error(answer, "kubelet does not answer", http.StatusConflict)
			return
		}
		if err := json.NewEncoder(answer).Encode(body); err != nil {
			t.Error(err)
		}
	})
	t.Setenv(testAgent, socket)
}

// call runs the plugin for the pod default/web, and returns its standard output and whether it succeeded.
func call(t *testing.T, command, conf string) (string, bool) {
	t.Helper()
	return callFor(t, "IgnoreUnknown=true;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=1-2", command, conf)
}

// callFor runs the plugin with the arguments that name a pod.
func callFor(t *testing.T, arguments, command, conf string) (string, bool) {
	t.Helper()
	program := exec.Command(os.Args[0])
	program.Env = []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=pod1", "CNI_NETNS=/var/run/netns/pod1", "CNI_IFNAME=net1", "CNI_PATH=/opt/cni/bin",
		"CNI_ARGS=" + arguments,
		// The test's own namespace is not a pod's.
		"CNI_NETNS_OVERRIDE=1",
		testAgent + "=" + os.Getenv(testAgent), testFolder + "=" + os.Getenv(testFolder),
	}
	program.Stdin = strings.NewReader(conf)
	var answer, faults bytes.Buffer
	program.Stdout, program.Stderr = &answer, &faults
	err := program.Run()
	if faults.Len() > 0 {
		t.Logf("%s: %s", command, faults.String())
	}
	return strings.Join(strings.Fields(answer.String()), ""), err == nil
}

// conf returns a configuration with more keys.
func conf(version, keys string) string {
	return `{"cniVersion":"` + version + `","name":"vfs","type":"softiov-cni"` + keys + `}`
}

func TestAddReportsTheSocketOfTheVF(t *testing.T) {
	startAgent(t)
	answer, ok := call(t, "ADD", conf("1.1.0", `,"deviceID":"pf1vf0"`))
	want := `{"cniVersion":"1.1.0","interfaces":[{"mac":"02:00:00:00:00:01","name":"net1","sandbox":"/var/run/netns/pod1",` +
		`"socketPath":"/run/softiov/pf1vf0/vf.sock"}]}`
	if !ok || answer != want {
		t.Errorf("%s, want %s", answer, want)
	}
	answer, ok = call(t, "ADD", conf("0.4.0", `,"runtimeConfig":{"deviceID":"pf1vf0"}`))
	if !ok || !strings.Contains(answer, `"mac":"02:00:00:00:00:01"`) {
		t.Error(answer)
	}
}

// Reported for plugins behind another one in a list (containernetworking/cni#346, multus-cni#973): the result of the plugin
// before was lost.
func TestAddKeepsTheResultOfThePluginBefore(t *testing.T) {
	startAgent(t)
	before := `,"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","mac":"02:00:00:00:00:09","sandbox":"/var/run/netns/pod1"}],` +
		`"ips":[{"interface":0,"address":"10.0.0.2/24"}],"dns":{"nameservers":["10.0.0.1"]}}`
	if answer, ok := call(t, "ADD", conf("0.4.0", `,"deviceID":"pf1vf0"`+strings.Replace(before, "1.1.0", "0.4.0", 1))); !ok || !strings.Contains(answer, `"name":"eth0"`) {
		t.Error(answer)
	}
	answer, ok := call(t, "ADD", conf("1.1.0", `,"deviceID":"pf1vf0"`+before))
	for _, part := range []string{`"name":"eth0"`, `"name":"net1"`, `"address":"10.0.0.2/24","interface":0`, `"nameservers":["10.0.0.1"]`,
		`"socketPath":"/run/softiov/pf1vf0/vf.sock"`} {
		if !ok || !strings.Contains(answer, part) {
			t.Errorf("%s lacks %s", answer, part)
		}
	}
	if answer, ok := call(t, "ADD", conf("1.1.0", `,"deviceID":"pf1vf0","prevResult":{"cniVersion":"9"}`)); ok {
		t.Errorf("an unreadable result of the previous plugin is taken: %s", answer)
	}
}

func TestAddDescribesVirtioVFsForMultus(t *testing.T) {
	startAgent(t)
	folder := filepath.Join(t.TempDir(), "devinfo/cni")
	t.Setenv(testFolder, folder)
	file := filepath.Join(folder, "default-vfs-pod1_net1")
	for _, test := range []struct{ vf, want string }{
		{"pf1vf0", ""},
		{"pf2vf0", `{"type":"vhost-user","version":"1.1.0","vhost-user":{"mode":"client","path":"/run/softiov/pf2vf0/vf.sock"}}`},
	} {
		keys := `,"deviceID":"` + test.vf + `","runtimeConfig":{"CNIDeviceInfoFile":"` + file + `"}`
		if answer, ok := call(t, "ADD", conf("1.1.0", keys)); !ok {
			t.Fatal(answer)
		}
		content, err := os.ReadFile(file)
		if test.want == "" {
			if !os.IsNotExist(err) {
				t.Errorf("%s is described as %s", test.vf, content)
			}
			continue
		}
		var got, want any
		if err != nil || json.Unmarshal(content, &got) != nil || json.Unmarshal([]byte(test.want), &want) != nil || !equal(got, want) {
			t.Errorf("%v, %s", err, content)
		}
	}
}

func TestConfigurationChoosesNoOtherFileOfTheNode(t *testing.T) {
	startAgent(t)
	folder := t.TempDir()
	t.Setenv(testFolder, filepath.Join(folder, "devinfo"))
	for _, file := range []string{"/preload", "/devinfo/../preload", "/devinfo/deeper/vf.json", "/devinfo"} {
		keys := `,"deviceID":"pf2vf0","runtimeConfig":{"CNIDeviceInfoFile":"` + folder + file + `"}`
		answer, ok := call(t, "ADD", conf("1.1.0", keys))
		if ok || !strings.Contains(answer, "leavethefiletoMultus") {
			t.Errorf("%s: %s", file, answer)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// Multus names the file of each network by the pod's container and interface. Another name is that of another network.
func TestNetworkDescribesNoDeviceOfAnotherNetwork(t *testing.T) {
	startAgent(t)
	folder := filepath.Join(t.TempDir(), "devinfo/cni")
	t.Setenv(testFolder, folder)
	for _, name := range []string{"default-vfs-pod2_net1", "default-vfs-pod1_net2", "default-vfs-pod11_net1"} {
		keys := `,"deviceID":"pf2vf0","runtimeConfig":{"CNIDeviceInfoFile":"` + filepath.Join(folder, name) + `"}`
		if answer, ok := call(t, "ADD", conf("1.1.0", keys)); ok || !strings.Contains(answer, "mustendin") {
			t.Errorf("%s: %s", name, answer)
		}
	}
	if left, err := os.ReadDir(folder); !os.IsNotExist(err) && len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func equal(one, other any) bool {
	first, _ := json.Marshal(one)
	second, _ := json.Marshal(other)
	return bytes.Equal(first, second)
}

func TestCheckComparesTheResultWithTheVF(t *testing.T) {
	startAgent(t)
	result := func(mac, path string) string {
		return `,"deviceID":"pf1vf0","prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","mac":"` + mac + `",` +
			`"sandbox":"/var/run/netns/pod1","socketPath":"` + path + `"}]}`
	}
	if answer, ok := call(t, "CHECK", conf("1.1.0", result("02:00:00:00:00:01", "/run/softiov/pf1vf0/vf.sock"))); !ok {
		t.Error(answer)
	}
	for _, other := range []string{result("02:00:00:00:00:09", "/run/softiov/pf1vf0/vf.sock"), result("02:00:00:00:00:01", "/run/x.sock")} {
		if answer, ok := call(t, "CHECK", conf("1.1.0", other)); ok || !strings.Contains(answer, "nointerfacenet1withVFpf1vf0") {
			t.Error(answer)
		}
	}
}

// Reported for sriov-cni: pods that cannot end because DEL fails.
func TestPodEndsWithoutAgentAndConfiguration(t *testing.T) {
	t.Setenv(testAgent, "/nonexistent")
	for _, keys := range []string{"", `,"deviceID":"pf1vf0"`, `,"vlan":5`} {
		if answer, ok := call(t, "DEL", conf("1.1.0", keys)); !ok || answer != "" {
			t.Errorf("%s: %s", keys, answer)
		}
	}
	if answer, ok := call(t, "GC", conf("1.1.0", `,"cni.dev/valid-attachments":[]`)); !ok {
		t.Error(answer)
	}
}

func TestStatusIsThatOfTheAgent(t *testing.T) {
	startAgent(t)
	if answer, ok := call(t, "STATUS", conf("1.1.0", "")); !ok {
		t.Error(answer)
	}
	t.Setenv(testAgent, "/nonexistent")
	if answer, ok := call(t, "STATUS", conf("1.1.0", "")); ok || !strings.Contains(answer, `"code":50`) {
		t.Error(answer)
	}
}

func TestVersionNamesThoseOfTheResult(t *testing.T) {
	if answer, ok := call(t, "VERSION", `{"cniVersion":"1.1.0"}`); !ok || !strings.Contains(answer, `"supportedVersions":["0.3.1","0.4.0","1.0.0","1.1.0"]`) {
		t.Error(answer)
	}
}

func TestRefusedNetworksNameCauseAndRemedy(t *testing.T) {
	startAgent(t)
	for _, test := range []struct{ keys, want string }{
		{"", "deviceIDismissing"},
		{`,"deviceID":"pf7vf0"`, "thehosthasnoVFpf7vf0"},
		{`,"deviceID":"pf1vf0","vlan":100`, "vlanisnotakeyofsoftiov-cni;setitintheclaim"},
		{`,"deviceID":"pf1vf0","spoofchk":"off"`, "spoofchkisnotakey"},
		{`,"deviceID":"pf1vf0","ipam":{"type":"host-local"}`, "ipamisnotsupported"},
	} {
		if answer, ok := call(t, "ADD", conf("1.1.0", test.keys)); ok || !strings.Contains(answer, test.want) {
			t.Errorf("%s: %s, want %s", test.keys, answer, test.want)
		}
	}
	t.Setenv(testAgent, "/nonexistent")
	if answer, ok := call(t, "ADD", conf("1.1.0", `,"deviceID":"pf1vf0"`)); ok || !strings.Contains(answer, `"code":11`) {
		t.Error(answer)
	}
}

func TestVFThatNoPodCanHaveIsRefused(t *testing.T) {
	startAgent(t)
	for vf, want := range map[string]string{
		"pf0vf0": "VFpf0vf0isforclaims,notforthedeviceplugin",
		"pf1vf1": "VFpf1vf1belongstotheclaimdefault/nic",
		"pf1vf2": "VFpf1vf2isunhealthy:quarantined:spoofing",
	} {
		if answer, ok := call(t, "ADD", conf("1.1.0", `,"deviceID":"`+vf+`"`)); ok || !strings.Contains(answer, want) {
			t.Errorf("%s: %s", vf, answer)
		}
	}
}

// A NetworkAttachmentDefinition without a resource passes a deviceID of its author's choice.
func TestVFOfAnotherPodIsRefused(t *testing.T) {
	startAgent(t)
	configuration := conf("1.1.0", `,"deviceID":"pf2vf1"`)
	if answer, ok := callFor(t, "K8S_POD_NAMESPACE=other;K8S_POD_NAME=web", "ADD", configuration); !ok {
		t.Errorf("the pod's own VF: %s", answer)
	}
	for arguments, want := range map[string]string{
		"K8S_POD_NAMESPACE=default;K8S_POD_NAME=web": `VFpf2vf1doesnotbelongtothepoddefault/web`,
		"K8S_POD_NAMESPACE=default;K8S_POD_NAME=db":  "kubeletdoesnotanswer",
		"K8S_POD_NAME=web":                           "CNI_ARGShasnoK8S_POD_NAMESPACE",
		"":                                           "CNI_ARGShasnoK8S_POD_NAMESPACE",
	} {
		answer, ok := callFor(t, arguments, "ADD", configuration)
		if ok || !strings.Contains(answer, want) || strings.Contains(answer, "02:00:00:00:00:03") {
			t.Errorf("%s: %s", arguments, answer)
		}
	}
}

func TestInstalledProgramIsThePlugin(t *testing.T) {
	folder := t.TempDir()
	for range 2 {
		if err := Install(folder); err != nil {
			t.Fatal(err)
		}
	}
	program := exec.Command(filepath.Join(folder, ProgramName))
	program.Env = []string{"CNI_COMMAND=VERSION"}
	program.Stdin = strings.NewReader(`{"cniVersion":"1.1.0"}`)
	if answer, err := program.Output(); err != nil || !strings.Contains(string(answer), "supportedVersions") {
		t.Errorf("%v, %s", err, answer)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := Install("/nonexistent"); err == nil || !strings.Contains(err.Error(), "install the CNI plugin") {
		t.Error(err)
	}
}
