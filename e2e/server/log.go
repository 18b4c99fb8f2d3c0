// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// listening is the line with which the server tells an address, as text and as JSON.
var listening = regexp.MustCompile(`listening"?[ ,]"?address"?[=:]"?([^" ]+):(\d+)"?[ ,]"?metrics"?[=:](true|false)`)

// listens reads the server's addresses from its log. The one for metrics is told last.
func (s *Server) listens() error {
	for _, found := range listening.FindAllStringSubmatch(s.Output(), -1) {
		if found[3] == "true" {
			s.metrics = found[1] + ":" + found[2]
			return nil
		}
		if port, err := strconv.Atoi(found[2]); err == nil && s.Port == 0 {
			s.Port = port
		}
	}
	return errors.New("it has not said that it listens")
}

// Output is what the server has said since it was started last.
func (s *Server) Output() string {
	text, err := os.ReadFile(s.Log)
	if err != nil || int64(len(text)) < s.begun {
		return "" // nothing was said before the file is there
	}
	return string(text[s.begun:])
}

// LastWords are the last lines of the server's log, those of a run before this one too. Whoever waits for a server asks
// for its health many times a second; those lines are left out.
func (s *Server) LastWords() string {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return ""
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool {
		return strings.Contains(line, "route=health")
	})
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// Said tells whether one line of the server's log, of whichever run, holds all of these words.
func (s *Server) Said(words ...string) bool {
	text, err := os.ReadFile(s.Log)
	return err == nil && hasLine(string(text), words)
}

func hasLine(text string, words []string) bool {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return true
		}
	}
	return false
}
