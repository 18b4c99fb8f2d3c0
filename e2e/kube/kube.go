// SPDX-License-Identifier: Apache-2.0

// Package kube runs a real API server with its etcd and garbage collector for tests, with the CRDs of OpenShift's own
// API module. A cluster lives in a folder of the test and ends with it; its API server can be stopped and started, as
// outages do.
package kube

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Options of a cluster. The zero value is a cluster as today's are.
type Options struct {
	// NoWatchList has the API server refuse to stream lists, as older ones do.
	NoWatchList bool
	// Users may authenticate besides the administrator; the key is the user, who has no rights until a role gives some.
	Users []string
	// Nodes may authenticate as kubelets do: NAME as system:node:NAME of the group system:nodes, held to its own objects
	// by the node authorizer and NodeRestriction.
	Nodes []string
	// NoCRDs leaves the definitions to the test.
	NoCRDs bool
}

// Cluster is a running cluster.
type Cluster struct {
	// Admin may do everything.
	Admin *rest.Config
	// Client is the administrator's.
	Client *dynamic.DynamicClient

	t       testing.TB
	bin     string
	dir     string
	options Options
	etcd    string
	port    string
	api     *exec.Cmd
}

// Start runs a cluster and installs the CRDs.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, bin: lab.Kube(t), dir: t.TempDir(), options: options, port: freePort(t)}
	etcd, peer := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t)
	c.etcd = etcd
	c.spawn("etcd", "--data-dir="+filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+etcd,
		"--advertise-client-urls="+etcd, "--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer,
		"--initial-cluster=default="+peer, "--quota-backend-bytes=8589934592")
	c.files()
	c.StartAPI()
	client, err := dynamic.NewForConfig(c.Admin)
	if err != nil {
		t.Fatal(err)
	}
	c.Client = client
	if !options.NoCRDs {
		c.installCRDs()
	}
	return c
}

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // only its number is wanted
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// spawn starts a program that ends with the test, its output in a file.
func (c *Cluster) spawn(program string, args ...string) *exec.Cmd {
	c.t.Helper()
	log, err := os.OpenFile(filepath.Join(c.dir, program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(c.bin, program), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	_ = log.Close()
	c.t.Cleanup(func() { kill(cmd) })
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended already
	_ = cmd.Wait()
}

// files writes what the API server reads.
func (c *Cluster) files() {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		c.t.Fatal(err)
	}
	tokens := []string{"admin-token,admin,admin,system:masters"}
	for _, user := range c.options.Users {
		tokens = append(tokens, fmt.Sprintf("%s-token,%s,%[1]s", user, user))
	}
	for _, node := range c.options.Nodes {
		tokens = append(tokens, fmt.Sprintf("%s-token,system:node:%s,%[1]s,system:nodes", node, node))
	}
	for name, text := range map[string][]byte{
		"audit.yaml": []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"),
		"sa.key":     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"sa.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		"tokens.csv": []byte(strings.Join(tokens, "\n") + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(c.dir, name), text, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

// StartAPI starts the API server and waits until it is ready.
func (c *Cluster) StartAPI() {
	c.t.Helper()
	args := []string{
		"--etcd-servers=" + c.etcd, "--bind-address=127.0.0.1", "--secure-port=" + c.port, "--cert-dir=" + filepath.Join(c.dir, "certs"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + filepath.Join(c.dir, "sa.pub"),
		"--service-account-signing-key-file=" + filepath.Join(c.dir, "sa.key"), "--token-auth-file=" + filepath.Join(c.dir, "tokens.csv"),
		"--authorization-mode=Node,RBAC", "--advertise-address=192.0.2.1", // nobody asks there, and a test's network may have no route
		"--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none", "--max-requests-inflight=2000",
	}
	if len(c.options.Nodes) > 0 {
		args = append(args, "--enable-admission-plugins=NodeRestriction",
			"--audit-policy-file="+filepath.Join(c.dir, "audit.yaml"), "--audit-log-path="+filepath.Join(c.dir, "audit.log"))
	}
	if c.options.NoWatchList {
		args = append(args, "--feature-gates=WatchList=false")
	}
	c.api = c.spawn("kube-apiserver", args...)
	ca := filepath.Join(c.dir, "certs", "apiserver.crt")
	deadline := time.Now().Add(60 * time.Second)
	for {
		c.Admin = &rest.Config{Host: "https://127.0.0.1:" + c.port, BearerToken: "admin-token", TLSClientConfig: rest.TLSClientConfig{CAFile: ca}, QPS: -1}
		if err := c.ready(); err == nil {
			return
		} else if time.Now().After(deadline) {
			c.t.Fatalf("the API server is not ready: %v\n%s", err, c.Log("kube-apiserver"))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (c *Cluster) ready() error {
	client, err := rest.HTTPClientFor(c.Admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Admin.Host+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", response.Status)
	}
	return nil
}

// StopAPI ends the API server at once, as a crash does.
func (c *Cluster) StopAPI() { kill(c.api) }

// User returns how one of Options.Users connects.
func (c *Cluster) User(name string) *rest.Config {
	config := rest.CopyConfig(c.Admin)
	config.BearerToken = name + "-token"
	return config
}

// Node returns how one of Options.Nodes connects.
func (c *Cluster) Node(name string) *rest.Config { return c.User(name) }

// Audit returns the API server's audit log, which is kept where there are Nodes: an event in JSON on each line, for every
// request that was answered.
func (c *Cluster) Audit() string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "audit.log"))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// SetWatchList has the API server, the next time it starts, stream lists or refuse to.
func (c *Cluster) SetWatchList(streams bool) { c.options.NoWatchList = !streams }

// ServiceAccount returns how a service account connects.
func (c *Cluster) ServiceAccount(namespace, name string) *rest.Config {
	config := rest.CopyConfig(c.Admin)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + name
	return config
}

// Kubeconfig writes a kubeconfig for a connection and returns its path.
func (c *Cluster) Kubeconfig(config *rest.Config) string {
	c.t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	kubeconfig.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, Impersonate: config.Impersonate.UserName}
	kubeconfig.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	kubeconfig.CurrentContext = "x"
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// Log returns the end of a program's output.
func (c *Cluster) Log(program string) string {
	text, _ := os.ReadFile(filepath.Join(c.dir, program+".log")) // for messages only
	lines := bytes.Split(text, []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}
