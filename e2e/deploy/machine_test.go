// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// machine does for one pod what a kubelet and its container runtime do, as far as this pod asks for it.
type machine struct {
	c       *kube.Cluster
	t       *testing.T
	pod     corev1.PodSpec
	volumes string // each volume is a folder in here
}

// container is a process that was started, and the file that has what it says.
type container struct {
	cmd *exec.Cmd
	log string
}

func (c *container) said() string {
	text, _ := os.ReadFile(c.log) // for messages only
	return string(text)
}

// write makes the volumes of what the API server has: settings, secrets with the group of the pod, and the service
// account's token.
func (m machine) write() {
	m.t.Helper()
	for _, volume := range m.pod.Volumes {
		switch {
		case volume.ConfigMap != nil:
			m.files(volume.Name, m.data("configmap", volume.ConfigMap.Name), 0o644)
		case volume.Secret != nil:
			m.files(volume.Name, m.data("secret", volume.Secret.SecretName), os.FileMode(*volume.Secret.DefaultMode))
		case volume.HostPath != nil:
			m.files(volume.Name, nil, 0)
		default:
			m.t.Fatalf("volume %s is of a kind that this machine does not know", volume.Name)
		}
	}
	token := strings.TrimSpace(m.c.Kubectl(m.t, "-n", "mcsnap", "create", "token", m.pod.ServiceAccountName))
	ca, err := os.ReadFile(m.c.Admin.CAFile)
	if err != nil {
		m.t.Fatal(err)
	}
	m.files("serviceaccount", map[string]string{"token": token, "ca.crt": string(ca), "namespace": "mcsnap"}, 0o440)
}

// data is what a ConfigMap or Secret holds; a Secret's token is written by a controller, so it may take a moment.
func (m machine) data(kind, name string) map[string]string {
	m.t.Helper()
	var object struct {
		Type string
		Data map[string]string
	}
	m.c.Eventually(kind+" "+name+" is there", func() error {
		out, err := m.c.TryKubectl(m.t, "-n", "mcsnap", "get", kind, name, "-o", "json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(out), &object); err != nil {
			return err
		}
		if object.Type == string(corev1.SecretTypeServiceAccountToken) && object.Data["token"] == "" {
			return fmt.Errorf("it has no token")
		}
		return nil
	})
	if kind == "secret" {
		for key, coded := range object.Data {
			text, err := base64.StdEncoding.DecodeString(coded)
			if err != nil {
				m.t.Fatal(err)
			}
			object.Data[key] = string(text)
		}
	}
	return object.Data
}

func (m machine) files(volume string, files map[string]string, mode os.FileMode) {
	m.t.Helper()
	dir := filepath.Join(m.volumes, volume)
	if err := os.Mkdir(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			m.t.Fatal(err)
		}
		if err := os.Chown(path, 0, int(*m.pod.SecurityContext.FSGroup)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// start runs a container: its root read-only, its volumes in their places, its user, and no capability.
func (m machine) start(c corev1.Container, root string) *container {
	m.t.Helper()
	security, pod := *c.SecurityContext, *m.pod.SecurityContext
	if !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || len(security.Capabilities.Add) > 0 {
		m.t.Fatalf("container %s asks for more than this machine gives", c.Name)
	}
	jail := jail{Root: root, User: int(*pod.RunAsUser), Group: int(*pod.RunAsGroup), Groups: []int{int(*pod.FSGroup)}, Args: append(c.Command, c.Args...)}
	if security.RunAsUser != nil {
		jail.User, jail.Group = int(*security.RunAsUser), int(*security.RunAsGroup)
	}
	for _, v := range c.VolumeMounts {
		jail.Mounts = append(jail.Mounts, mount{filepath.Join(m.volumes, v.Name), v.MountPath, v.ReadOnly})
	}
	jail.Mounts = append(jail.Mounts, mount{filepath.Join(m.volumes, "serviceaccount"), "/var/run/secrets/kubernetes.io/serviceaccount", true})
	api, err := url.Parse(m.c.Admin.Host)
	if err != nil {
		m.t.Fatal(err)
	}
	jail.Env = []string{"KUBERNETES_SERVICE_HOST=" + api.Hostname(), "KUBERNETES_SERVICE_PORT=" + api.Port()}
	for _, e := range c.Env {
		jail.Env = append(jail.Env, e.Name+"="+e.Value)
	}
	out, err := os.Create(filepath.Join(m.volumes, c.Name+".log"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the process has its own
	cmd := jail.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	return &container{cmd, out.Name()}
}
