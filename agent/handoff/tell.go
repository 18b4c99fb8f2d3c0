// SPDX-License-Identifier: Apache-2.0

package handoff

import (
	"errors"
	"log/slog"
	"strconv"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/coreos/go-systemd/v22/journal"
)

// One MESSAGE_ID per outcome, for ever: what people search the journal and set alerts by (journalctl MESSAGE_ID=…).
const (
	MessageHandedOver = "5da02447f6544115b673ccbb8656b2cc"
	MessageUnchanged  = "256cf3265cb74ada9795487be7e525df"
	MessageJoined     = "1d2ca6879b24448ab30f29a3d2d50182"
	MessageDamaged    = "b4cb9589c1f940049e6e5b7b4d8d424f" // missing or damaged, and no server gave it back
	MessageMixed      = "934dcca6e3ae414fb91d596102aaada2"
	MessageFailed     = "56deac18eb7e4bb586bdc98130b89580" // any other failure
)

// MessageID is the journal's id for an outcome.
func MessageID(outcome Outcome, err error) string {
	_, damaged := errors.AsType[*DamagedError](err)
	_, mixed := errors.AsType[*MixedError](err)
	switch {
	case damaged:
		return MessageDamaged
	case mixed:
		return MessageMixed
	case err != nil:
		return MessageFailed
	case outcome.Result == Joined:
		return MessageJoined
	case outcome.Result == Unchanged:
		return MessageUnchanged
	}
	return MessageHandedOver
}

// Systemd tells the service manager and the journal. Where there is neither, it only logs.
type Systemd struct {
	Log *slog.Logger
	// Journal is whether outcomes go to this machine's journal: not for a scratch root.
	Journal bool
	told    string
}

// Status sets the line that `systemctl status` shows.
func (s *Systemd) Status(line string) {
	s.Log.Debug(line)
	s.notify("STATUS=" + line)
}

// Ended logs the outcome, writes the journal's entry and, when the boot went well, tells systemd that the unit is up. An
// outcome that is the same as the one before, as when a blocked boot tries again, is told once.
func (s *Systemd) Ended(outcome Outcome, err error) {
	if s.told != outcome.Reason {
		s.told = outcome.Reason
		priority := journal.PriInfo
		if err != nil {
			priority = journal.PriErr
			s.Log.Error("first boot failed", "problem", err)
		} else {
			s.Log.Info(outcome.Reason, "result", outcome.Result)
		}
		if s.Journal && journal.Enabled() {
			if err := journal.Send(outcome.Reason, priority, fields(outcome, err)); err != nil {
				s.Log.Warn("the journal did not take the outcome", "problem", err)
			}
		}
	}
	if err != nil {
		s.notify("STATUS=failed: " + outcome.Reason)
		return
	}
	s.notify("READY=1\nSTATUS=" + outcome.Reason)
}

func fields(outcome Outcome, err error) map[string]string {
	return map[string]string{
		"MESSAGE_ID":             MessageID(outcome, err),
		"MCSNAP_RESULT":          string(outcome.Result),
		"MCSNAP_RENDERED_CONFIG": outcome.Name,
		"MCSNAP_DIGEST":          string(outcome.Digest),
		"MCSNAP_SOURCE":          string(outcome.Source),
		"MCSNAP_ATTEMPTS":        strconv.Itoa(outcome.Attempts),
	}
}

func (s *Systemd) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.Log.Warn("systemd was not told", "state", state, "problem", err)
	}
}
