// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/mcs/source"
	"github.com/mcsnap/mcsnap/snapshot"
)

// view makes the view of this moment.
func (s *Source) view() *source.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &source.View{Pools: map[string]source.Pool{}, Rendered: map[string]snapshot.Digest{}, Controller: s.controller}
	for name, pool := range s.pools {
		if why := s.broken[source.Select(pool)]; why != "" {
			pool.Problem = fmt.Sprintf("%s cannot be captured: %s", source.Select(pool), why)
		}
		for _, rendered := range []string{pool.Spec, pool.Status} {
			if config, exists := s.live[rendered]; exists && config.digest != "" {
				v.Rendered[rendered] = config.digest
			}
		}
		v.Pools[name] = pool
	}
	if s.cfg.NoCredentials {
		return v
	}
	kubeconfig, err := s.kubeconfig()
	if err == nil {
		v.CredentialsExpire, err = source.CheckKubeconfig(kubeconfig)
	}
	if err != nil {
		v.CredentialProblem = err.Error()
		return v
	}
	problem, warning := source.JudgeExpiry(v.CredentialsExpire, s.cfg.Now())
	if problem != "" {
		problem = filepath.Join(s.cfg.TokenDir, "token") + ": " + problem
	}
	if warning != "" {
		s.warn(warning)
	}
	v.Kubeconfig, v.CredentialProblem = kubeconfig, problem
	return v
}

// warn says a thing about credentials once.
func (s *Source) warn(text string) {
	if s.warned != text {
		s.warned = text
		s.log.Warn("credentials for nodes", "folder", s.cfg.TokenDir, "warning", text)
	}
}

// kubeconfig makes what nodes join with: the bootstrapper's token, the newest CA bundle, and where the API server is.
// Callers hold s.mu.
func (s *Source) kubeconfig() ([]byte, error) {
	token, err := s.credential("token")
	if err != nil {
		return nil, err
	}
	ca := s.bundle
	s.caSource = "kubeconfig-data"
	if len(bytes.TrimSpace(ca)) == 0 {
		if s.cfg.CABundle != "" {
			s.warn("the ConfigMap " + s.cfg.CABundle + " has no ca-bundle.crt; ca.crt of the folder is served, which a rotation of CAs leaves behind")
		}
		s.caSource = "legacy"
		if ca, err = s.credential("ca.crt"); err != nil {
			return nil, err
		}
	}
	server := s.cfg.APIServer
	if server == "" && s.controller != nil {
		server = s.controller.InternalAPIServer
	}
	if server == "" {
		return nil, errors.New("no URL of the API server for nodes: the ControllerConfig names none; set spec.infra.status.apiServerInternalURI or --apiserver-url")
	}
	config := clientcmdapi.Config{
		Kind: "Config", APIVersion: "v1", CurrentContext: "kubelet",
		Clusters:  []clientcmdapi.NamedCluster{{Name: "local", Cluster: clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "kubelet", AuthInfo: clientcmdapi.AuthInfo{Token: string(bytes.TrimSpace(token))}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "kubelet", Context: clientcmdapi.Context{Cluster: "local", AuthInfo: "kubelet"}}},
	}
	return yaml.Marshal(config)
}

// credential reads one file of the token folder.
func (s *Source) credential(name string) ([]byte, error) {
	path := filepath.Join(s.cfg.TokenDir, name)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s is missing; mount the secret with the credentials that nodes join with", path)
	case err != nil:
		return nil, fmt.Errorf("the credentials for nodes cannot be read: %w; make the file readable for this user", err)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("%s is empty; mount the secret with the credentials that nodes join with", path)
	}
	return text, nil
}

// CASource returns where the CA in the kubeconfig for nodes comes from: "kubeconfig-data", "legacy" (the token folder)
// or "none".
func (s *Source) CASource() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.caSource, "none")
}
