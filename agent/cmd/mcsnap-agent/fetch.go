// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcsnap/mcsnap/agent/doctor"
	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/agent/refetch"
	"github.com/mcsnap/mcsnap/snapshot"
)

// fetcher gets snapshots back for the first boot, with all the patience that the deadline allows.
func fetcher(log *slog.Logger, deadline time.Duration) handoff.Fetch {
	return func(ctx context.Context, config *handoff.Config, token string, digest snapshot.Digest) (*snapshot.Snapshot, int, error) {
		return servers(config, token, deadline, true, log).Get(ctx, digest)
	}
}

// asker tells the doctor whether the servers still have a digest.
func asker(deadline time.Duration) doctor.Ask {
	return func(ctx context.Context, config *handoff.Config, token string, digest snapshot.Digest) error {
		_, _, err := servers(config, token, deadline, false, nil).Get(ctx, digest)
		return err
	}
}

func servers(config *handoff.Config, token string, deadline time.Duration, patient bool, log *slog.Logger) refetch.Servers {
	return refetch.Servers{URLs: config.Servers, CA: config.CA, AuthHeader: config.AuthHeader, Token: token, Deadline: deadline, Patient: patient, Log: log}
}
