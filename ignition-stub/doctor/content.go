// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/resolve"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// lookInside reads the config that was sent, and the snapshot in it.
func (e *exam) lookInside() bool {
	config := e.answer.body
	if e.target.Compression == contents.Gzip {
		inflated, err := contents.Inflate(config, contents.MaxInflated)
		if err != nil {
			return e.fail("config", fmt.Sprintf("the stub asks for gzip, and the body is none: %v", err), "render the stub without --gzip")
		}
		config = inflated
	}
	if hash := e.target.Verification.Hash; hash != "" {
		if err := fetch.Verify(config, hash); err != nil {
			return e.fail("config", err.Error()+": Ignition fails at once", "the stub names the hash of another config; render it again")
		}
	}
	warnings, err := stub.Validate(config)
	if err != nil {
		return e.fail("config", fmt.Sprintf("not one that Ignition reads: %v", err), "is it the config server that answers there?")
	}
	var head pointer
	_ = json.Unmarshal(config, &head) // validated above
	text := "spec " + string(head.Ignition.Version) + ", valid"
	if head.Ignition.Version > e.stub.Ignition.Version {
		e.warn("config", text, fmt.Sprintf("newer than the stub's %s: an Ignition that reads the stub may not read it", e.stub.Ignition.Version))
	} else {
		if len(warnings) > 0 {
			text += fmt.Sprintf(", with %d warnings of Ignition's", len(warnings))
		}
		e.say("config", OK, text)
	}
	e.judgeSnapshot(config)
	return true
}

func (e *exam) judgeSnapshot(config []byte) {
	s, err := snapshot.Extract(config)
	if _, none := errors.AsType[*snapshot.NoSnapshotError](err); none {
		e.warn("snapshot", "none in the config", "the server is not mcsnap's: a node depends on its config staying in the cluster")
		return
	}
	if err != nil {
		e.fail("snapshot", err.Error(), "the server sends a damaged snapshot; look at its store")
		return
	}
	text := fmt.Sprintf("%s of pool %s, %s, opens and verifies", s.Name(), s.Pool(), s.Digest())
	if says := e.answer.header.Get("Mcsnap-Snapshot-Digest"); says != "" && says != string(s.Digest()) {
		e.fail("snapshot", text+"; but the answer's header names "+says, "something between changes answers; look for a cache")
		return
	}
	if fallback := e.answer.header.Get("Mcsnap-Fallback"); fallback != "" {
		e.warn("snapshot", text, "the config the cluster wants is gone and was never captured; this is the pool's last one")
		return
	}
	e.say("snapshot", OK, text)
}

// lookAtFiles fetches everything else that a machine would: other configs, and the files they name.
func (e *exam) lookAtFiles() bool {
	if strings.HasPrefix(string(e.stub.Ignition.Version), "2.") {
		e.say("files", None, "not followed for spec 2.2")
		return true
	}
	o := resolve.Options{Inline: true, Fetch: fetch.Options{
		Deadline: 2 * e.Timeout, Tries: 1, AttemptTimeout: e.Timeout, StallTimeout: e.Timeout, Now: e.Now,
		BackoffMin: 100 * time.Millisecond, BackoffMax: time.Second,
	}}
	result, err := resolve.Resolve(e.ctx, e.raw, o)
	if err != nil {
		return e.fail("files", err.Error(), "a machine's Ignition fetches it too, and fails or waits on it")
	}
	files, size := 0, 0
	for _, source := range result.Sources {
		if strings.HasPrefix(source.What, "file") {
			files, size = files+1, size+source.Bytes
		}
	}
	if files == 0 {
		e.say("files", OK, "all contents are in the config")
	} else {
		e.say("files", OK, fmt.Sprintf("%d fetched besides (%d KB), all verify", files, size/1000))
	}
	return true
}

func quiet(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Sprintf("%.150s", err)
}

func bareText(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "(not a URL)"
	}
	return bare(u)
}
