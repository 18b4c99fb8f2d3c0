// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// CheckKubeconfig reads a kubeconfig that is to be handed to nodes and says when its credential ends; the time is zero
// when the credential does not say. The error names what a node could not work with and quotes nothing of the file.
func CheckKubeconfig(kubeconfig []byte) (expires time.Time, err error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return time.Time{}, errors.New("not a kubeconfig: it does not parse as one; write it with kubectl config view --flatten")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return time.Time{}, errors.New("current-context names no context of the file; set it with kubectl config use-context")
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok || cluster.Server == "" {
		return time.Time{}, errors.New("the current context names no cluster with a server; set clusters[].cluster.server")
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return time.Time{}, errors.New("the current context names no user of the file; set contexts[].context.user")
	}
	for _, f := range []struct{ field, value string }{
		{"certificate-authority", cluster.CertificateAuthority}, {"tokenFile", user.TokenFile},
		{"client-certificate", user.ClientCertificate}, {"client-key", user.ClientKey},
	} {
		if f.value != "" {
			return time.Time{}, fmt.Errorf("%s names a file, which a node does not have; embed it with kubectl config view --flatten --raw", f.field)
		}
	}
	switch {
	case user.Token != "":
		return tokenExpiry(user.Token), nil
	case len(user.ClientCertificateData) > 0:
		return certificateExpiry(user.ClientCertificateData)
	}
	return time.Time{}, errors.New("the current context's user has neither a token nor a client certificate; a node could not ask for its own")
}

// tokenExpiry reads the end of a service account token (a JWT). Bootstrap tokens are none and keep their end in the
// cluster.
func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Expires <= 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0).UTC()
}

func certificateExpiry(chain []byte) (time.Time, error) {
	block, _ := pem.Decode(chain)
	if block == nil {
		return time.Time{}, errors.New("client-certificate-data is not PEM; embed it with kubectl config view --flatten --raw")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, errors.New("client-certificate-data is not a certificate; embed it with kubectl config view --flatten --raw")
	}
	return cert.NotAfter, nil
}

// BootBudget is how long a machine may need from its fetch to the use of its credentials: slow hardware, an OS image
// to pull and two reboots.
const BootBudget = 2 * time.Hour

// JudgeExpiry says what an end of credentials means at a moment: problem when nodes that fetch now could not use them
// at all, warning when a slow node could not.
func JudgeExpiry(expires, now time.Time) (problem, warning string) {
	left := expires.Sub(now)
	switch {
	case expires.IsZero() || left >= BootBudget:
		return "", ""
	case left <= 0:
		return "the credentials for nodes have expired; write a kubeconfig with a valid one", ""
	}
	return "", fmt.Sprintf("the credentials for nodes end in %s, a slow machine needs %s; write a kubeconfig with a longer one",
		left.Round(time.Second), BootBudget)
}
