// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/mcsnap/mcsnap/e2e/kube"
)

// fakeAPI is an API server that does what a test tells it to, faults included, which a real one cannot be made to.
type fakeAPI struct {
	mu      sync.Mutex
	version int
	objects map[string]map[string]map[string]any // by resource and name
	streams map[string][]chan string             // by resource, the watches that are open
	gone    map[string]bool                      // resources whose next watch is answered 410
	silent  bool                                 // lists are begun to be streamed, and nothing comes
	cutList map[string]int                       // resources whose list is cut short so many times
}

func newFakeAPI(t *testing.T) (*fakeAPI, *rest.Config) {
	f := &fakeAPI{
		version: 100, objects: map[string]map[string]map[string]any{}, streams: map[string][]chan string{},
		gone: map[string]bool{}, cutList: map[string]int{},
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return f, &rest.Config{Host: server.URL}
}

const (
	fakePools   = "machineconfigpools"
	fakeConfigs = "machineconfigs"
)

// set changes an object; with tell, the watches learn of it.
func (f *fakeAPI) set(resource string, object map[string]any, tell bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	metadata := object["metadata"].(map[string]any)
	metadata["resourceVersion"], metadata["uid"] = strconv.Itoa(f.version), "uid-"+metadata["name"].(string)
	if f.objects[resource] == nil {
		f.objects[resource] = map[string]map[string]any{}
	}
	name := metadata["name"].(string)
	kind := "ADDED"
	if f.objects[resource][name] != nil {
		kind = "MODIFIED"
	}
	f.objects[resource][name] = object
	line := eventLine(kind, object)
	if tell {
		f.send(resource, line)
	}
	return line
}

// remove deletes an object.
func (f *fakeAPI) remove(resource, name string, tell bool) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	object := f.objects[resource][name]
	delete(f.objects[resource], name)
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(f.version)
	line := eventLine("DELETED", object)
	if tell {
		f.send(resource, line)
	}
	return line
}

func eventLine(kind string, object map[string]any) string {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

func (f *fakeAPI) send(resource, line string) {
	for _, stream := range f.streams[resource] {
		stream <- line
	}
}

// say sends lines to the watches of a resource, whatever they say.
func (f *fakeAPI) say(resource string, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range lines {
		f.send(resource, line)
	}
}

// watched counts the open watches of a resource.
func (f *fakeAPI) watched(resource string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.streams[resource])
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := path.Base(r.URL.Path)
	switch query := r.URL.Query(); {
	case path.Base(path.Dir(r.URL.Path)) == fakeConfigs:
		f.one(w, resource)
	case query.Get("sendInitialEvents") != "" && f.silent:
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case query.Get("sendInitialEvents") != "":
		http.Error(w, `{"message":"sendInitialEvents is forbidden"}`, http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		f.stream(w, r, resource)
	default:
		f.list(w, resource)
	}
}

func (f *fakeAPI) one(w http.ResponseWriter, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if object := f.objects[fakeConfigs][name]; object != nil {
		_ = json.NewEncoder(w).Encode(object)
		return
	}
	http.Error(w, `{"message":"not found"}`, http.StatusNotFound)
}

func (f *fakeAPI) list(w http.ResponseWriter, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := []any{}
	for _, object := range f.objects[resource] {
		items = append(items, object)
	}
	text, err := json.Marshal(map[string]any{"items": items, "metadata": map[string]any{"resourceVersion": strconv.Itoa(f.version)}})
	if err != nil {
		panic(err)
	}
	if f.cutList[resource] > 0 {
		f.cutList[resource]--
		text = text[:len(text)/2]
	}
	_, _ = w.Write(text)
}

func (f *fakeAPI) stream(w http.ResponseWriter, r *http.Request, resource string) {
	f.mu.Lock()
	if f.gone[resource] {
		f.gone[resource] = false
		f.mu.Unlock()
		http.Error(w, `{"message":"too old"}`, http.StatusGone)
		return
	}
	lines := make(chan string, 100)
	f.streams[resource] = append(f.streams[resource], lines)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		kept := f.streams[resource][:0]
		for _, stream := range f.streams[resource] {
			if stream != lines {
				kept = append(kept, stream)
			}
		}
		f.streams[resource] = kept
	}()
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case line := <-lines:
			if line == hangUp {
				return
			}
			fmt.Fprint(w, line)
			w.(http.Flusher).Flush()
		}
	}
}

// hangUp ends a watch.
const hangUp = "hang up"

func rendered(name, text string) map[string]any { return kube.Rendered(name, text, 100) }
