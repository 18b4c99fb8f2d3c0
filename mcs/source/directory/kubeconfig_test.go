// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func kubeconfigYAML(expires time.Time) string {
	payload := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix()))
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://api-int:6443"}}]
users: [{name: u, user: {token: e30.%s.c2ln}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, payload)
}

// The life of a kubeconfig file: not there yet, good, broken, ending, ended, renewed (field case 50).
func TestKubeconfigFile(t *testing.T) {
	f := newFolder(t, nil)
	f.source.cfg.Kubeconfig = filepath.Join(f.dir, "kubeconfig")
	if view := f.load(); view.CredentialProblem == "" || f.said("kubeconfig", "cannot be read") != 1 {
		t.Errorf("a file that is not there: %+v", view)
	}
	good := kubeconfigYAML(f.now.Add(3 * time.Hour))
	f.write("kubeconfig", good)
	if view := f.load(); view.CredentialProblem != "" || string(view.Kubeconfig) != good || !view.CredentialsExpire.Equal(f.now.Add(3*time.Hour)) {
		t.Errorf("a good file: %+v", view)
	}
	f.said()
	f.write("kubeconfig", good[:len(good)/2])
	if view := f.load(); view.CredentialProblem != "" || string(view.Kubeconfig) != good || f.said("level=ERROR", "kubeconfig") != 1 {
		t.Errorf("a broken file: %+v", view)
	}
	f.write("kubeconfig", good)
	f.now = f.now.Add(2 * time.Hour)
	f.load()
	if view := f.load(); view.CredentialProblem != "" || f.said("level=WARN", "end soon") != 1 {
		t.Errorf("a credential that ends soon: %+v", view)
	}
	f.now = f.now.Add(2 * time.Hour)
	if view := f.load(); !strings.Contains(view.CredentialProblem, "expired") || f.said("level=ERROR", "expired") != 1 {
		t.Errorf("a credential that has ended: %+v", view)
	}
	f.write("kubeconfig", kubeconfigYAML(f.now.Add(24*time.Hour)))
	if view := f.load(); view.CredentialProblem != "" {
		t.Errorf("a renewed credential: %+v", view)
	}
}
