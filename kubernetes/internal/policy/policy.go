// Package policy reads the policy of a claim: opaque parameters in iproute2's words, checked before the host sees them.
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"softiov.io/kubernetes/internal/host"
)

const (
	// APIVersion is the version of the parameters in claims and device classes.
	APIVersion = "vf.softiov.io/v1alpha1"
	// Kind is the kind of the parameters.
	Kind = "VfPolicy"
)

// reader checks a value of one parameter, and returns the value of the host's setting.
type reader func(json.RawMessage) (any, error)

// readers has the check of each parameter, by the name of the parameter and of the host's setting.
var readers = map[string]reader{
	"mac":         mac,
	"vlan":        number(4094, "0 is no VLAN"),
	"qos":         number(7, "the priority of the port VLAN"),
	"proto":       word("802.1Q"),
	"spoofchk":    onOff,
	"trust":       onOff,
	"state":       word("auto", "enable", "disable"),
	"max_tx_rate": number(1_000_000, "Mb/s; 0 is no limit"),
	"min_tx_rate": number(0, "the card guarantees no rate; leave min_tx_rate out"),
}

// Parse reads the parameters of one configuration of a claim or device class.
func Parse(raw []byte) (host.Settings, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("the parameters are not a JSON object: %w", err)
	}
	if err := checkHeader(fields); err != nil {
		return nil, err
	}
	settings := host.Settings{}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		read, known := readers[name]
		if !known {
			faults = append(faults, fmt.Errorf("unknown parameter %s; the parameters are: %s", name, names()))
			continue
		}
		value, err := read(fields[name])
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		settings[name] = encoded
	}
	return settings, errors.Join(faults...)
}

// checkHeader checks apiVersion and kind, and removes them from the fields.
func checkHeader(fields map[string]json.RawMessage) error {
	for _, header := range [][2]string{{"apiVersion", APIVersion}, {"kind", Kind}} {
		name, want := header[0], header[1]
		var value string
		if raw, present := fields[name]; present {
			// A value that is no string stays empty and is refused below.
			_ = json.Unmarshal(raw, &value)
		}
		if value != want {
			return fmt.Errorf("%s is %q; set it to %s", name, value, want)
		}
		delete(fields, name)
	}
	return nil
}

func names() string { return strings.Join(slices.Sorted(maps.Keys(readers)), ", ") }

// mac reads an Ethernet address of one station.
func mac(raw json.RawMessage) (any, error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, fmt.Errorf("%s is not a string; write the address in quotes", raw)
	}
	address, err := net.ParseMAC(text)
	switch {
	case err != nil || len(address) != 6:
		return nil, fmt.Errorf("%q is not an Ethernet address; write six hexadecimal bytes with colons", text)
	case address[0]&1 != 0:
		return nil, fmt.Errorf("%s is a multicast address; clear the lowest bit of the first byte", text)
	case bytes.Equal(address, make([]byte, 6)):
		return nil, fmt.Errorf("%s is no address; leave mac out to let the guest choose", text)
	}
	return address.String(), nil
}

// number returns the check of a whole number from 0 to most. The hint ends the error.
func number(most int64, hint string) reader {
	return func(raw json.RawMessage) (any, error) {
		var value int64
		if json.Unmarshal(raw, &value) != nil || bytes.Equal(raw, []byte("null")) {
			return nil, fmt.Errorf("%s is not a whole number; write it without quotes (0-%d, %s)", raw, most, hint)
		}
		if value < 0 || value > most {
			return nil, fmt.Errorf("%d is out of range (0-%d, %s)", value, most, hint)
		}
		return value, nil
	}
}

// word returns the check of one of some words.
func word(words ...string) reader {
	return func(raw json.RawMessage) (any, error) {
		var value string
		if json.Unmarshal(raw, &value) != nil || !slices.Contains(words, value) {
			return nil, fmt.Errorf("%s is not supported; use %s", raw, strings.Join(words, ", "))
		}
		return value, nil
	}
}

// onOff reads a switch. YAML turns an unquoted on into true, so both forms are read.
func onOff(raw json.RawMessage) (any, error) {
	switch string(raw) {
	case `"on"`, "true":
		return true, nil
	case `"off"`, "false":
		return false, nil
	}
	return nil, fmt.Errorf("%s is not supported; use on or off", raw)
}
