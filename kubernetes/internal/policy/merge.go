package policy

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"softiov.io/kubernetes/internal/host"
)

// Source is the author of a configuration.
type Source int

const (
	// Class marks parameters of a DeviceClass, which administrators write.
	Class Source = iota
	// Claim marks parameters of a ResourceClaim, which users write.
	Claim
)

// Config is the parameters of one source.
type Config struct {
	Source   Source
	Settings host.Settings
}

// privileged has the values that lift protection of other VFs. Only a class may set them, unless the agent
// permits them to claims.
var privileged = map[string]string{"trust": "true", "spoofchk": "false"}

// Rules decide what claims may set.
type Rules struct {
	// ClaimsMay names the privileged parameters that claims may set too: trust, spoofchk.
	ClaimsMay []string
}

// NewRules checks the names of privileged parameters.
func NewRules(claimsMay []string) (Rules, error) {
	for _, name := range claimsMay {
		if _, known := privileged[name]; !known {
			known := strings.Join(slices.Sorted(maps.Keys(privileged)), ", ")
			return Rules{}, fmt.Errorf("%q is not a privileged parameter; these are: %s", name, known)
		}
	}
	return Rules{ClaimsMay: claimsMay}, nil
}

// Merge combines configurations of one request in their order. A later one overrides an earlier one of the same source.
// A claim does not override its class.
func (r Rules) Merge(configs []Config) (host.Settings, error) {
	class, claim := host.Settings{}, host.Settings{}
	for _, config := range configs {
		if config.Source == Class {
			maps.Copy(class, config.Settings)
		} else {
			maps.Copy(claim, config.Settings)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claim)) {
		value := claim[name]
		if fixed, present := class[name]; present && !bytes.Equal(fixed, value) {
			return nil, fmt.Errorf("%s: the claim sets %s, but its device class sets %s; leave %s out of the claim",
				name, value, fixed, name)
		}
		_, fixed := class[name]
		if privileged[name] == string(value) && !fixed && !slices.Contains(r.ClaimsMay, name) {
			return nil, fmt.Errorf("%s: a claim may not set %s; let a device class set it, or start the agent with --claims-may=%s",
				name, value, name)
		}
	}
	maps.Copy(claim, class)
	return claim, nil
}

// CheckVF refuses settings that would change what the host's administrator has set on the VF.
func CheckVF(vf host.VF, wanted host.Settings) error {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		origin, set := vf.Origins[name]
		if !set || origin == "default" || Same(vf.Settings[name], wanted[name]) {
			continue
		}
		return fmt.Errorf("%s: %s of %s is %s, set by the host's administrator (%s); leave %s out of the claim, "+
			"or give it back: softiov vf set %s --default %s",
			name, name, vf.Name, vf.Settings[name], origin, name, vf.Name, name)
	}
	return nil
}

// Lost returns the settings that are not in force although no command has changed them since: a host that lost its kept
// changes starts with its file's values.
func Lost(vf host.VF, wanted host.Settings) host.Settings {
	lost := host.Settings{}
	for name, value := range wanted {
		origin := vf.Origins[name]
		if !Same(vf.Settings[name], value) && origin != "kept" && origin != "volatile" {
			lost[name] = value
		}
	}
	return lost
}

// Unset returns the wanted settings that have neither a value of the administrator nor the claim's: the administrator has given
// back a value that the claim wants too.
func Unset(vf host.VF, wanted host.Settings) host.Settings {
	unset := host.Settings{}
	for name, value := range wanted {
		if origin, set := vf.Origins[name]; (!set || origin == "default") && !Same(vf.Settings[name], value) {
			unset[name] = value
		}
	}
	return unset
}

// GiveBack returns the change that ends a claim's settings. A value that an administrator has set meanwhile stays: a kept one
// has replaced the claim's, and a volatile one hides it.
func GiveBack(vf host.VF, settings host.Settings) host.Change {
	change := host.Change{Set: host.Settings{}}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		switch origin := vf.Origins[name]; {
		case origin == "volatile":
			// The host first removes both values, then sets the volatile one again.
			change.Default = append(change.Default, name)
			change.Set[name], change.Volatile = vf.Settings[name], true
		case origin == "kept" && Same(vf.Settings[name], settings[name]):
			change.Default = append(change.Default, name)
		}
	}
	return change
}

// Same reports whether two values of a setting are equal. The host prints addresses in lower case, as Parse does.
func Same(one, other []byte) bool { return bytes.Equal(one, other) }
