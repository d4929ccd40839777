package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority issues the cluster's certificates, in one folder.
type authority struct {
	folder string
	key    crypto.Signer
	root   *x509.Certificate
	serial int64
}

func newAuthority(folder string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{folder: folder, key: key}
	a.root = a.template("softiov-test", nil)
	a.root.IsCA, a.root.BasicConstraintsValid = true, true
	a.root.KeyUsage |= x509.KeyUsageCertSign
	return a, a.sign("ca", a.root, key)
}

func (a *authority) template(name string, groups []string) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial),
		Subject:      pkix.Name{CommonName: name, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

// sign writes certificate and key as FILE.crt and FILE.key.
func (a *authority) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	certificate, err := x509.CreateCertificate(rand.Reader, template, a.root, key.Public(), a.key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		a.path(file + ".crt"): {Type: "CERTIFICATE", Bytes: certificate},
		a.path(file + ".key"): {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// issue writes the certificate of a user or server in some groups.
func (a *authority) issue(file, name string, groups []string, addresses ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := a.template(name, groups)
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	template.DNSNames = []string{"kubernetes.default.svc"}
	return a.sign(file, template, key)
}

// kubeconfig writes FILE.kubeconfig for the user with the certificate FILE.crt.
func (a *authority) kubeconfig(file, server string) error {
	type named map[string]any
	config, err := json.Marshal(named{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []named{{"name": "test", "cluster": named{"server": server, "certificate-authority": a.path("ca.crt")}}},
		"users":    []named{{"name": "test", "user": named{"client-certificate": a.path(file + ".crt"), "client-key": a.path(file + ".key")}}},
		"contexts": []named{{"name": "test", "context": named{"cluster": "test", "user": "test"}}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(a.path(file+".kubeconfig"), config, 0o600)
}

func (a *authority) path(file string) string {
	return filepath.Join(a.folder, file)
}
