// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsnap/mcsnap/snapshot"
)

var (
	poolsResource = schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigpools"}
	nodesResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// What nodes say of themselves.
const (
	annotationGroup = "machineconfiguration.openshift.io/"
	birthAnnotation = "mcsnap/birth-snapshot"
)

// Read reads the roots from a cluster. An error means that nothing may be removed: whatever could not be read might name
// anything.
func Read(ctx context.Context, client dynamic.Interface) (Roots, error) {
	roots := Roots{Pools: map[string]bool{}, Named: map[string][]string{}, Digests: map[snapshot.Digest][]string{}}
	pools, err := list(ctx, client, poolsResource)
	if err != nil {
		return roots, fmt.Errorf("read the pools: %w", err)
	}
	for _, pool := range pools {
		roots.Pools[pool.GetName()] = true
		for _, field := range []string{"spec", "status"} {
			name, _, err := unstructured.NestedString(pool.Object, field, "configuration", "name")
			if err != nil {
				return roots, fmt.Errorf("read pool %s: %w", pool.GetName(), err)
			}
			if name != "" {
				roots.Named[name] = append(roots.Named[name], "pool "+pool.GetName()+": "+field)
			}
		}
	}
	nodes, err := list(ctx, client, nodesResource)
	if err != nil {
		return roots, fmt.Errorf("read the nodes: %w", err)
	}
	for _, node := range nodes {
		annotations := node.GetAnnotations()
		for _, key := range []string{"currentConfig", "desiredConfig"} {
			if name := annotations[annotationGroup+key]; name != "" {
				roots.Named[name] = append(roots.Named[name], "node "+node.GetName()+": "+key)
			}
		}
		if digest, err := snapshot.ParseDigest(annotations[birthAnnotation]); err == nil {
			roots.Digests[digest] = append(roots.Digests[digest], "node "+node.GetName()+": booted from it")
		}
	}
	return roots, nil
}

// list reads all objects of a kind in pages.
func list(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	options := metav1.ListOptions{Limit: 200}
	for {
		page, err := client.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}
