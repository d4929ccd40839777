package rules

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"softiov.io/kubernetes/internal/cni"
	"softiov.io/kubernetes/internal/policy"
)

// kinds has a new object of each kind that the manifests may have.
var kinds = map[string]func() any{
	"v1 Namespace":                                                     func() any { return &corev1.Namespace{} },
	"v1 ServiceAccount":                                                func() any { return &corev1.ServiceAccount{} },
	"v1 ConfigMap":                                                     func() any { return &corev1.ConfigMap{} },
	"v1 Pod":                                                           func() any { return &corev1.Pod{} },
	"apps/v1 DaemonSet":                                                func() any { return &appsv1.DaemonSet{} },
	"resource.k8s.io/v1 DeviceClass":                                   func() any { return &resourcev1.DeviceClass{} },
	"resource.k8s.io/v1 ResourceClaim":                                 func() any { return &resourcev1.ResourceClaim{} },
	"resource.k8s.io/v1 ResourceClaimTemplate":                         func() any { return &resourcev1.ResourceClaimTemplate{} },
	"rbac.authorization.k8s.io/v1 ClusterRole":                         func() any { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding":                  func() any { return &rbacv1.ClusterRoleBinding{} },
	"kustomize.config.k8s.io/v1beta1 Kustomization":                    func() any { return &kustomization{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        func() any { return &admissionv1.ValidatingAdmissionPolicy{} },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() any { return &admissionv1.ValidatingAdmissionPolicyBinding{} },
}

// kustomization is the fields of kustomize's file that the guide uses. The stage of the cluster gives the file to kubectl.
type kustomization struct {
	APIVersion string
	Kind       string
	Resources  []string
	Images     []struct{ Name, NewName, NewTag string }
}

// elsewhere are the kinds of objects in the guide whose types are not Kubernetes' own.
var elsewhere = []string{
	"kubevirt.io/v1 KubeVirt", "kubevirt.io/v1 VirtualMachineInstance", "k8s.cni.cncf.io/v1 NetworkAttachmentDefinition",
}

// check decodes the objects of a YAML text strictly, and the parameters of claims as the agent does.
func check(text string) error {
	for _, document := range strings.Split(text, "\n---\n") {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return err
		}
		// The module softiov.io/kubernetes/tools/guide has the types of these.
		if slices.Contains(elsewhere, head.APIVersion+" "+head.Kind) {
			if err := checkNetwork(document); err != nil {
				return err
			}
			continue
		}
		create, known := kinds[head.APIVersion+" "+head.Kind]
		if !known {
			return fmt.Errorf("unknown kind %s %s", head.APIVersion, head.Kind)
		}
		object := create()
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			return fmt.Errorf("%s: %w", head.Kind, err)
		}
		for _, parameters := range opaque(object) {
			if _, err := policy.Parse(parameters); err != nil {
				return fmt.Errorf("%s: %w", head.Kind, err)
			}
		}
	}
	return nil
}

// checkNetwork checks the configuration of a NetworkAttachmentDefinition as the CNI plugin does. Other objects have none.
func checkNetwork(document string) error {
	var object struct{ Spec struct{ Config string } }
	if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Spec.Config == "" {
		return err
	}
	return cni.Validate([]byte(object.Spec.Config))
}

// opaque returns the parameters of a claim, template or class.
func opaque(object any) [][]byte {
	var all [][]byte
	add := func(config *resourcev1.OpaqueDeviceConfiguration) {
		if config != nil {
			all = append(all, config.Parameters.Raw)
		}
	}
	claim := func(devices *resourcev1.DeviceClaim) {
		for i := range devices.Config {
			add(devices.Config[i].Opaque)
		}
	}
	switch object := object.(type) {
	case *resourcev1.DeviceClass:
		for i := range object.Spec.Config {
			add(object.Spec.Config[i].Opaque)
		}
	case *resourcev1.ResourceClaim:
		claim(&object.Spec.Devices)
	case *resourcev1.ResourceClaimTemplate:
		claim(&object.Spec.Spec.Devices)
	}
	return all
}

func TestManifestsFitTheAPI(t *testing.T) {
	for _, name := range []string{"kustomize/namespace.yaml", "kustomize/softiov.yaml", "../docs/examples/kubernetes-ci/suite.yaml"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := check(strings.TrimSpace(string(content))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManifestsOfTheGuideFitTheAPI checks the YAML blocks of the guide's page that have a kind.
func TestManifestsOfTheGuideFitTheAPI(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "../docs/guide/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, part := range bytes.Split(page, []byte("```yaml\n"))[1:] {
		block, _, _ := strings.Cut(string(part), "```")
		if !strings.Contains(block, "kind:") {
			continue
		}
		checked++
		if err := check(strings.TrimSpace(block)); err != nil {
			t.Errorf("block %d: %v\n%s", checked, err, block)
		}
	}
	if checked < 3 {
		t.Errorf("the page has %d blocks with a kind, fewer than it should", checked)
	}
}
