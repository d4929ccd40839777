package main

import (
	"flag"
	"strings"
	"testing"
)

// parse reads options as the command does.
func parse(t *testing.T, arguments ...string) *config {
	t.Helper()
	set := flag.NewFlagSet("softiov-node", flag.ContinueOnError)
	config := flags(set)
	if err := set.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestPortHasOneResourceOrClaims(t *testing.T) {
	for _, test := range []struct{ option, port, want string }{
		{"", "pf0", ""}, {"pf0", "pf0", "softiov.io/vf"}, {"pf0", "pf1", ""}, {"pf0=example.com/fast, pf1", "pf0", "example.com/fast"},
		{"pf0=example.com/fast, pf1", "pf1", "softiov.io/vf"}, {"*", "pf7", "softiov.io/vf"}, {"*,pf0=a.b/c", "pf0", "a.b/c"},
	} {
		resources, err := parse(t, "--device-plugin", test.option).resources()
		if got := resourceOf(resources, test.port); err != nil || got != test.want {
			t.Errorf("%q: %s has %q, %v; want %q", test.option, test.port, got, err, test.want)
		}
	}
}

func TestInvalidOptionsAreRefusedWithTheRemedy(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--node=n", "--device-plugin=pf0=vf"}, `"pf0=vf" is not PORT or PORT=DOMAIN/NAME`},
		{[]string{"--node=n", "--device-plugin=pf0,pf0=a.b/c"}, "port pf0 is named twice"},
		{[]string{"--node=n", "--device-plugin=p/f"}, "is not PORT"},
		{[]string{"--node=n", "--claims-may=vlan"}, `"vlan" is not a privileged parameter`},
		{nil, "--node is missing"},
		{[]string{"--dra=false"}, "--dra=false without --device-plugin offers nothing"},
	} {
		config := parse(t, append(test.arguments, "--state", t.TempDir())...)
		if _, err := newAgent(config, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.arguments, err, test.want)
		}
	}
}
