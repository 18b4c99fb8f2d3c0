// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The kinds that mcsnap reads.
var (
	Pools       = openshift("machineconfigpools")
	Configs     = openshift("machineconfigs")
	Controllers = openshift("controllerconfigs")
	ConfigMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	Nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func openshift(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: resource}
}

// installCRDs installs OpenShift's own definitions, from its API module.
func (c *Cluster) installCRDs() {
	c.t.Helper()
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		c.t.Fatalf("find the module github.com/openshift/api: %v; run go mod download", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(module)), "machineconfiguration/v1/zz_generated.crd-manifests")
	for _, file := range []string{"machineconfigs", "machineconfigpools-SelfManagedHA", "controllerconfigs-Default"} {
		text, err := os.ReadFile(filepath.Join(folder, "0000_80_machine-config_01_"+file+".crd.yaml"))
		if err != nil {
			c.t.Fatal(err)
		}
		var crd unstructured.Unstructured
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			c.t.Fatal(err)
		}
		if _, err := c.Client.Resource(crds).Create(context.Background(), &crd, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, resource := range []schema.GroupVersionResource{Pools, Configs, Controllers} {
		c.Eventually("the CRD is served", func() error {
			_, err := c.Client.Resource(resource).List(context.Background(), metav1.ListOptions{})
			return err
		})
	}
}

// Eventually waits up to a minute until check returns nil.
func (c *Cluster) Eventually(what string, check func() error) {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Apply creates an object, or replaces the spec, data and the like of the one that is there. A status is written too.
func (c *Cluster) Apply(resource schema.GroupVersionResource, namespace string, object map[string]any) *unstructured.Unstructured {
	c.t.Helper()
	applied, err := c.TryApply(context.Background(), resource, namespace, object)
	if err != nil {
		c.t.Fatal(err)
	}
	return applied
}

// TryApply is Apply for when the API server may be away.
func (c *Cluster) TryApply(ctx context.Context, resource schema.GroupVersionResource, namespace string, object map[string]any) (*unstructured.Unstructured, error) {
	client := c.Client.Resource(resource).Namespace(namespace)
	want := &unstructured.Unstructured{Object: object}
	status, hasStatus := object["status"]
	made, err := client.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var there *unstructured.Unstructured
		if there, err = client.Get(ctx, want.GetName(), metav1.GetOptions{}); err == nil {
			want.SetResourceVersion(there.GetResourceVersion())
			made, err = client.Update(ctx, want, metav1.UpdateOptions{})
		}
	}
	if err != nil || !hasStatus {
		return made, err
	}
	made.Object["status"] = status
	return client.UpdateStatus(ctx, made, metav1.UpdateOptions{})
}

// Delete removes an object that may be gone already.
func (c *Cluster) Delete(resource schema.GroupVersionResource, name string) {
	c.t.Helper()
	if err := c.Client.Resource(resource).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
}

// Rendered is a rendered config whose contents begin with a text, of about a size in bytes.
func Rendered(name, text string, size int) map[string]any {
	return map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{"name": name, "annotations": map[string]any{
			"machineconfiguration.openshift.io/generated-by-controller-version": "test",
		}},
		"spec": map[string]any{
			"osImageURL": "registry.example.com/os@sha256:" + strings.Repeat("e", 64),
			"config": map[string]any{
				"ignition": map[string]any{"version": "3.4.0"},
				"storage": map[string]any{"files": []any{map[string]any{
					"path": "/etc/text", "mode": int64(0o644), "overwrite": true,
					"contents": map[string]any{"source": "data:," + url.PathEscape(text) + strings.Repeat("x", max(0, size-len(text)))},
				}}},
			},
		},
	}
}

// Pool is a pool with its two configurations and the count of machines that have reached the first.
func Pool(name, spec, status string, updated int) map[string]any {
	reference := func(config string) map[string]any {
		if config == "" {
			return map[string]any{}
		}
		return map[string]any{"name": config}
	}
	return map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"configuration": reference(spec), "paused": false},
		"status": map[string]any{
			"configuration": reference(status), "updatedMachineCount": int64(updated), "machineCount": int64(3),
			"readyMachineCount": int64(0), "unavailableMachineCount": int64(0), "degradedMachineCount": int64(0),
		},
	}
}

// Controller is a ControllerConfig with what mcsnap reads of it, and the least that its CRD asks for besides.
func Controller(apiServer string, kubeletCA, cloudCA []byte) map[string]any {
	bundle := func(pem []byte) any {
		if len(pem) == 0 {
			return nil
		}
		return base64.StdEncoding.EncodeToString(pem)
	}
	spec := map[string]any{
		"additionalTrustBundle": nil, "network": nil, "baseOSContainerImage": "", "cloudProviderConfig": "", "clusterDNSIP": "172.30.0.10",
		"ipFamilies": "IPv4", "osImageURL": "", "releaseImage": "", "rootCAData": bundle([]byte("ROOT CA\n")),
		"kubeAPIServerServingCAData": bundle(kubeletCA), "cloudProviderCAData": bundle(cloudCA),
	}
	spec["images"] = map[string]any{}
	spec["proxy"] = nil
	spec["dns"] = map[string]any{"apiVersion": "config.openshift.io/v1", "kind": "DNS", "metadata": map[string]any{}, "spec": map[string]any{"baseDomain": "example.com"}, "status": map[string]any{}}
	spec["infra"] = map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": map[string]any{},
		"spec": map[string]any{"cloudConfig": map[string]any{"name": ""}, "platformSpec": map[string]any{}},
		"status": map[string]any{
			"apiServerInternalURI": apiServer, "apiServerURL": apiServer, "controlPlaneTopology": "HighlyAvailable",
			"infrastructureTopology": "HighlyAvailable", "etcdDiscoveryDomain": "", "infrastructureName": "lab",
			"platformStatus": map[string]any{"type": "None"},
		},
	}
	return map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "ControllerConfig",
		"metadata": map[string]any{"name": "machine-config-controller"}, "spec": spec,
	}
}

// TryDelete is Delete for when the API server may be away.
func (c *Cluster) TryDelete(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	err := c.Client.Resource(resource).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Gone fails while an object exists.
func (c *Cluster) Gone(ctx context.Context, resource schema.GroupVersionResource, name string) error {
	_, err := c.Client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s %s still exists", resource.Resource, name)
	}
	return err
}
