// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// node is a machine that boots: it asks as Ignition does. Connection errors and 5xx are asked again after 0.2, 0.4, 0.8,
// 1.6, 3.2 and then every 5 seconds, each attempt with ten seconds for the response's header; anything else that is not
// 200, and a body that is cut short, ends the boot.
type node struct {
	client *http.Client
	url    string

	retries  int
	fallback bool
	cut      bool // the body was cut short
	rendered string
	digest   snapshot.Digest
	body     []byte
}

const (
	firstPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
)

// boot fetches the config and looks at it as the machine would. An error means that the boot failed.
func (n *node) boot(ctx context.Context) error {
	pause := firstPause
	var last error
	for {
		again, err := n.attempt(ctx)
		if err == nil {
			return n.check()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("after %d retries, the last for: %w", n.retries, last)
		}
		if !again {
			return err
		}
		last = err
		n.retries++
		time.Sleep(pause)
		pause = min(2*pause, mostPause)
	}
}

func (n *node) attempt(ctx context.Context) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url, nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := n.client.Do(request)
	if err != nil {
		return true, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	if response.StatusCode >= 500 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000)) // for the message only
		return true, fmt.Errorf("%s: %s", response.Status, text)
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("%s is final", response.Status)
	}
	n.body, err = io.ReadAll(response.Body)
	if err != nil {
		n.cut = true
		return false, fmt.Errorf("the body is cut short: %w", err)
	}
	if len(n.body) == 0 {
		return false, errors.New("an empty 200 boots a bare machine")
	}
	n.rendered = response.Header.Get("Mcsnap-Rendered-Config")
	n.digest = snapshot.Digest(response.Header.Get("Mcsnap-Snapshot-Digest"))
	n.fallback = response.Header.Get("Mcsnap-Fallback") != ""
	return false, nil
}

// check sees to it that the machine is told one name, and carries the contents of that name.
func (n *node) check() error {
	s, err := snapshot.Extract(n.body)
	if err != nil {
		return err
	}
	if s.Name() != n.rendered || s.Digest() != n.digest {
		return fmt.Errorf("the headers say %s %s, the snapshot is %s %s", n.rendered, n.digest, s.Name(), s.Digest())
	}
	var config struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source, Compression string }
			}
		}
	}
	if err := json.Unmarshal(n.body, &config); err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, file := range config.Storage.Files {
		if files[file.Path], err = contents.Decode(file.Contents.Source, file.Contents.Compression, contents.MaxInflated); err != nil {
			return fmt.Errorf("%s: %w", file.Path, err)
		}
	}
	var annotations map[string]string
	if err := json.Unmarshal(files["/etc/machine-config-daemon/node-annotations.json"], &annotations); err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	told := annotations["machineconfiguration.openshift.io/currentConfig"]
	if told != s.Name() || annotations["mcsnap/birth-snapshot"] != string(s.Digest()) {
		return fmt.Errorf("the annotations say %s, the snapshot is %s", told, s.Name())
	}
	// The text file of every rendered config in the replay begins with the config's name.
	if !strings.HasPrefix(string(files["/etc/text"]), s.Name()) {
		return fmt.Errorf("%s comes with another config's file", s.Name())
	}
	if len(files["/etc/kubernetes/kubeconfig"]) == 0 {
		return errors.New("no credentials: the node would never join")
	}
	return nil
}
