// SPDX-License-Identifier: Apache-2.0

// Package events tells the cluster's users, as Events on a MachineConfigPool, what they would otherwise find in a log:
// that a pool is served its last selected config, and why a pool is not served. Nothing hangs on an Event; what cannot
// be written is dropped. Only names that come from the cluster stand in one.
package events

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/mcsnap/mcsnap/mcs/publish"
)

// Events writes Events. See [New].
type Events struct {
	client coreclient.EventInterface
	log    *slog.Logger
	queue  chan *corev1.Event
	said   map[string]string // by pool, the last event; for the goroutine that calls Answered
}

// namespace is where Events of objects without a namespace are kept.
const namespace = metav1.NamespaceDefault

// New returns an Events; it connects to nothing yet.
func New(config *rest.Config, log *slog.Logger) (*Events, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 10 * time.Second
	client, err := coreclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &Events{client: client.Events(namespace), log: log, queue: make(chan *corev1.Event, 64), said: map[string]string{}}, nil
}

// Run writes what Answered has queued until ctx ends, one a second at most.
func (e *Events) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-e.queue:
			if _, err := e.client.Create(ctx, event, metav1.CreateOptions{}); err != nil && ctx.Err() == nil {
				e.log.Info("an event could not be written", "reason", event.Reason, "pool", event.InvolvedObject.Name, "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

// Answered takes note of a pool's new answer. It never waits.
func (e *Events) Answered(a *publish.Answer) {
	kind, reason, message := corev1.EventTypeNormal, "Served", fmt.Sprintf("new nodes get %s", a.Rendered)
	switch {
	case a.Reason != "":
		kind, reason, message = corev1.EventTypeWarning, "NotServed", a.Reason
	case a.Fallback:
		kind, reason = corev1.EventTypeWarning, "ServedLastSelected"
		message = fmt.Sprintf("what the pool names was never captured; new nodes get %s, which the pool was answered with last", a.Rendered)
	case a.Stale != "":
		kind, reason, message = corev1.EventTypeWarning, "ServedStale", a.Stale
	}
	was, known := e.said[a.Pool]
	e.said[a.Pool] = reason + message
	if was == reason+message || !known && kind == corev1.EventTypeNormal {
		return // a start is no event
	}
	now := metav1.Now()
	host, _ := os.Hostname() // only told
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: "mcs-", Namespace: namespace},
		InvolvedObject: corev1.ObjectReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: a.Pool},
		Type:           kind, Reason: reason, Message: fmt.Sprintf("%.1000s", message),
		Source: corev1.EventSource{Component: "mcs", Host: host}, Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
	select {
	case e.queue <- event:
	default: // the API server is away and has missed more than it needs to know
	}
}
