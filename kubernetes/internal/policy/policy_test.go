package policy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"softiov.io/kubernetes/internal/host"
)

func parameters(fields string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q%s}`, APIVersion, Kind, fields)
}

func TestParametersBecomeSettings(t *testing.T) {
	for _, test := range []struct{ fields, want string }{
		{``, `{}`},
		{`,"vlan":100,"qos":3`, `{"qos":3,"vlan":100}`},
		{`,"mac":"02:AB:00:00:00:01"`, `{"mac":"02:ab:00:00:00:01"}`},
		{`,"spoofchk":"off","trust":"on"`, `{"spoofchk":false,"trust":true}`},
		// Unquoted on and off in YAML arrive as booleans.
		{`,"spoofchk":true,"trust":false`, `{"spoofchk":true,"trust":false}`},
		{`,"state":"enable","max_tx_rate":500,"min_tx_rate":0`, `{"max_tx_rate":500,"min_tx_rate":0,"state":"enable"}`},
		{`,"vlan":0,"proto":"802.1Q"`, `{"proto":"802.1Q","vlan":0}`},
	} {
		settings, err := Parse(parameters(test.fields))
		if err != nil {
			t.Errorf("%s: %v", test.fields, err)
			continue
		}
		if encoded, _ := json.Marshal(settings); string(encoded) != test.want {
			t.Errorf("%s: settings %s, want %s", test.fields, encoded, test.want)
		}
	}
}

func TestInvalidParameterIsNamedWithValueAndRemedy(t *testing.T) {
	for _, test := range []struct{ fields, want string }{
		{`,"vlan":4095`, "vlan: 4095 is out of range (0-4094, 0 is no VLAN)"},
		{`,"vlan":-1`, "vlan: -1 is out of range"},
		{`,"vlan":"100"`, `vlan: "100" is not a whole number; write it without quotes`},
		{`,"vlan":null`, "vlan: null is not a whole number"},
		{`,"vlan":1.5`, "vlan: 1.5 is not a whole number"},
		{`,"qos":8`, "qos: 8 is out of range (0-7"},
		{`,"mac":"01:00:5e:00:00:01"`, "mac: 01:00:5e:00:00:01 is a multicast address"},
		{`,"mac":"02:00"`, `mac: "02:00" is not an Ethernet address`},
		{`,"mac":"00:00:00:00:00:00"`, "leave mac out"},
		{`,"mac":"02:00:5e:10:00:00:00:01"`, "is not an Ethernet address"},
		{`,"mac":1200`, "mac: 1200 is not a string; write the address in quotes"},
		{`,"spoofchk":"yes"`, `spoofchk: "yes" is not supported; use on or off`},
		{`,"state":"up"`, `state: "up" is not supported; use auto, enable, disable`},
		{`,"proto":"802.1ad"`, `proto: "802.1ad" is not supported; use 802.1Q`},
		{`,"min_tx_rate":10`, "min_tx_rate: 10 is out of range (0-0, the card guarantees no rate; leave min_tx_rate out)"},
		{`,"vlanId":3`, "unknown parameter vlanId; the parameters are: mac, max_tx_rate, min_tx_rate, proto, qos, "},
	} {
		_, err := Parse(parameters(test.fields))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.fields, err, test.want)
		}
	}
}

func TestEveryInvalidParameterIsReported(t *testing.T) {
	_, err := Parse(parameters(`,"vlan":5000,"qos":9`))
	if err == nil || !strings.Contains(err.Error(), "vlan: 5000") || !strings.Contains(err.Error(), "qos: 9") {
		t.Errorf("error %v does not name vlan and qos", err)
	}
}

func TestParametersOfAnotherKindAreRefused(t *testing.T) {
	for _, test := range []struct{ raw, want string }{
		{`[1]`, "not a JSON object"},
		{`{"vlan":1}`, `set it to `},
		{`{"apiVersion":"vf.softiov.io/v1","kind":"VfPolicy"}`, `apiVersion is "vf.softiov.io/v1"; set it to ` + APIVersion},
		{`{"apiVersion":"` + APIVersion + `","kind":7}`, `kind is ""; set it to VfPolicy`},
	} {
		if _, err := Parse([]byte(test.raw)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.raw, err, test.want)
		}
	}
}

func settings(text string) host.Settings {
	var settings host.Settings
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		panic(err)
	}
	return settings
}

func TestClaimDoesNotOverrideItsClass(t *testing.T) {
	for _, test := range []struct {
		name         string
		class, claim string
		may          []string
		want, refuse string
	}{
		{"both add up", `{"vlan":100}`, `{"qos":3}`, nil, `{"qos":3,"vlan":100}`, ""},
		{"equal values agree", `{"vlan":100}`, `{"vlan":100}`, nil, `{"vlan":100}`, ""},
		{"class wins by refusal", `{"vlan":100}`, `{"vlan":200}`, nil, "", "the claim sets 200, but its device class sets 100"},
		{"claim may not trust", `{}`, `{"trust":true}`, nil, "", "--claims-may=trust"},
		{"claim may not end spoofchk", `{}`, `{"spoofchk":false}`, nil, "", "--claims-may=spoofchk"},
		{"claim may protect", `{}`, `{"trust":false,"spoofchk":true}`, nil, `{"spoofchk":true,"trust":false}`, ""},
		{"class may trust", `{"trust":true}`, `{"trust":true}`, nil, `{"trust":true}`, ""},
		{"agent allows trust", `{}`, `{"trust":true}`, []string{"trust"}, `{"trust":true}`, ""},
	} {
		rules, err := NewRules(test.may)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := rules.Merge([]Config{{Class, settings(test.class)}, {Claim, settings(test.claim)}})
		if test.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), test.refuse) {
				t.Errorf("%s: error %v, want %q", test.name, err, test.refuse)
			}
			continue
		}
		if encoded, _ := json.Marshal(merged); err != nil || string(encoded) != test.want {
			t.Errorf("%s: %s, %v; want %s", test.name, encoded, err, test.want)
		}
	}
	if _, err := NewRules([]string{"vlan"}); err == nil || !strings.Contains(err.Error(), "spoofchk, trust") {
		t.Errorf("NewRules accepts vlan: %v", err)
	}
}

func TestLaterConfigOfOneSourceWins(t *testing.T) {
	merged, err := Rules{}.Merge([]Config{{Claim, settings(`{"vlan":1,"qos":1}`)}, {Claim, settings(`{"vlan":2}`)}})
	if encoded, _ := json.Marshal(merged); err != nil || string(encoded) != `{"qos":1,"vlan":2}` {
		t.Errorf("%s, %v", encoded, err)
	}
}

func TestAdministratorsValueIsFinal(t *testing.T) {
	for _, test := range []struct{ origin, wanted, want string }{
		{"file", `{"vlan":200}`, "vlan of pf0vf1 is 100, set by the host's administrator (file)"},
		{"kept", `{"vlan":200}`, "softiov vf set pf0vf1 --default vlan"},
		{"file", `{"vlan":100}`, ""},
		{"default", `{"vlan":200}`, ""},
		{"file", `{"qos":1}`, ""},
	} {
		vf := host.VF{Name: "pf0vf1", Settings: settings(`{"vlan":100,"qos":0}`), Origins: map[string]string{"vlan": test.origin}}
		err := CheckVF(vf, settings(test.wanted))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

func TestOnlySettingsThatTheHostLostAreLost(t *testing.T) {
	vf := host.VF{
		Settings: settings(`{"vlan":0,"qos":3,"state":"disable","max_tx_rate":0}`),
		Origins:  map[string]string{"qos": "kept", "state": "volatile", "max_tx_rate": "default"},
	}
	lost := Lost(vf, settings(`{"vlan":100,"qos":3,"state":"auto","max_tx_rate":500}`))
	if encoded, _ := json.Marshal(lost); string(encoded) != `{"max_tx_rate":500,"vlan":100}` {
		t.Errorf("lost %s", encoded)
	}
}

func TestOnlyTheClaimsOwnValuesAreGivenBack(t *testing.T) {
	vf := host.VF{
		Settings: settings(`{"vlan":20,"qos":3,"max_tx_rate":100,"trust":false,"state":"auto"}`),
		Origins:  map[string]string{"vlan": "kept", "qos": "kept", "max_tx_rate": "volatile", "state": "file"},
	}
	change := GiveBack(vf, settings(`{"vlan":100,"qos":3,"max_tx_rate":500,"trust":true,"state":"auto"}`))
	if encoded, _ := json.Marshal(change); string(encoded) != `{"set":{"max_tx_rate":100},"default":["max_tx_rate","qos"],"volatile":true}` {
		t.Errorf("%s", encoded)
	}
	if change := GiveBack(vf, settings(`{"vlan":100}`)); len(change.Default) != 0 || len(change.Set) != 0 {
		t.Errorf("%+v", change)
	}
}
