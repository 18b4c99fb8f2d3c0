// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"context"
	"time"
)

// Pauses between the attempts of a blocked boot. Inside one attempt the fetcher has retries of its own.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

// Persist is [Run] until it succeeds or the context ends: what Block means. While it lasts the unit is starting, so that
// the kubelet, which is ordered after it, is not.
func Persist(ctx context.Context, options Options) (Outcome, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		outcome, err := Run(ctx, options)
		if err == nil {
			return outcome, nil
		}
		select {
		case <-ctx.Done():
			return outcome, err
		case <-time.After(pause):
		}
	}
}

// Policy is what a failure means on this node: the flag where one was given, else agent.yaml, else Continue. An
// agent.yaml that cannot be read does not stand in the way of a snapshot that verifies: problem tells of it.
func Policy(options Options, flag OnFailure) (policy OnFailure, problem error) {
	if flag != "" {
		return flag, nil
	}
	config, err := ReadConfig(options.Node)
	if err != nil || config == nil {
		return Continue, err
	}
	return config.OnFailure, nil
}
