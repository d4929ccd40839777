package tools

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// everything are values that turn on all of the chart's options.
var everything = map[string]any{
	"agent": map[string]any{
		"devicePlugin": []any{"pf1=softiov.io/fast"}, "claimsMay": []any{"trust"}, "metadata": true, "nodeFeatures": true,
		"cniBinDir": "/opt/cni/bin", "verbosity": 4,
	},
	"host":             map[string]any{"tun": true},
	"nodeSelector":     map[string]any{"zone": "lab"},
	"imagePullSecrets": []any{map[string]any{"name": "registry"}},
	"tolerations":      []any{map[string]any{"operator": "Exists"}},
}

// checkSchema checks the objects of a text against the OpenAPI schemas of Kubernetes' API, which the API server uses for
// server-side apply: fields, their types, and keys of lists that may occur once.
func checkSchema(t *testing.T, text string) {
	t.Helper()
	schemas := applyconfigurations.NewTypeConverter(scheme.Scheme)
	objects := 0
	for _, document := range strings.Split(text, "\n---\n") {
		var content map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &content); err != nil {
			t.Errorf("%v\n%s", err, document)
			continue
		}
		if len(content) == 0 {
			continue
		}
		objects++
		object := &unstructured.Unstructured{Object: content}
		if _, err := schemas.ObjectToTyped(object); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	if objects == 0 {
		t.Error("the text has no object")
	}
}

func TestManifestsFitTheSchemasOfTheAPI(t *testing.T) {
	for name, values := range map[string]map[string]any{"defaults": nil, "everything": everything} {
		t.Run(name, func(t *testing.T) {
			text, err := render(values)
			if err != nil {
				t.Fatal(err)
			}
			checkSchema(t, text)
		})
	}
}

// The check finds the faults that it is for.
func TestSchemasRefuseFaultyManifests(t *testing.T) {
	text, err := render(everything)
	if err != nil {
		t.Fatal(err)
	}
	schemas := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for _, test := range []struct{ name, old, new, want string }{
		{"typing error", "serviceAccountName:", "serviceAcountName:", "serviceAcountName"},
		{"wrong type", "containerPort: 9808", `containerPort: "9808"`, "containerPort"},
		{"volume twice", "- name: state\n        hostPath", "- name: runtime\n        hostPath", "duplicate"},
	} {
		faulty := strings.Replace(text, test.old, test.new, 1)
		if faulty == text {
			t.Errorf("%s: the manifests lack %q", test.name, test.old)
		}
		refused := false
		for _, document := range strings.Split(faulty, "\n---\n") {
			var content map[string]any
			if err := yaml.Unmarshal([]byte(document), &content); err != nil {
				t.Fatal(err)
			}
			_, err := schemas.ObjectToTyped(&unstructured.Unstructured{Object: content})
			refused = refused || err != nil && strings.Contains(err.Error(), test.want)
		}
		if !refused {
			t.Errorf("%s is not refused", test.name)
		}
	}
}
