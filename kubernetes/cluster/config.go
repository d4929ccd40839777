package cluster

// Addresses of the cluster. The API server listens on its service's address itself.
const (
	clusterAddress = "10.99.0.1"
	serviceAddress = "10.96.0.1"
	// underlay is the MTU between the nodes: frames of 1,514 bytes fit into the VXLAN.
	underlay = "1550"
	server   = "https://" + serviceAddress + ":443"
)

// containerdConfig has the node's folders of added programs, of the cluster's programs and of CNI, and the path of runc. Some
// machines have no CAP_SYS_RESOURCE, without which runc cannot lower oom_score_adj. The native snapshotter copies images, and
// works on every file system.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.internal.v1.opt']
path = %q
[plugins.'io.containerd.cri.v1.images']
snapshotter = "native"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "localhost/pause:test"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [%q]
conf_dir = %q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`

// cniConfig has the node's addresses of pods.
const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
"dataDir": "/run/cni", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// kubeletConfig has the path of the authority's certificate, and the folder of volume plugins, which kubelet makes. A full
// disk of the machine is no reason to evict pods, and files of a changed ConfigMap appear within seconds.
const kubeletConfig = `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
"authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true}, "x509": {"clientCAFile": %q}},
"authorization": {"mode": "Webhook"}, "cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false,
"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "oomScoreAdj": 0, "resolvConf": "/dev/null",
"evictionHard": {"memory.available": "0%%", "nodefs.available": "0%%", "imagefs.available": "0%%", "nodefs.inodesFree": "0%%", "imagefs.inodesFree": "0%%"},
"volumePluginDir": %q, "imageGCHighThresholdPercent": 100, "nodeStatusUpdateFrequency": "2s", "syncFrequency": "4s"}
`
