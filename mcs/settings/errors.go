// SPDX-License-Identifier: Apache-2.0

package settings

import "fmt"

// Problem is one thing that is wrong with what a file or the environment says, and the remedy.
type Problem struct {
	// Where is the file and its line, or "environment".
	Where   string `json:"where"`
	Key     string `json:"key,omitempty"`
	Problem string `json:"problem"`
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Where + ": " + p.Problem
	}
	return p.Where + ": " + p.Key + ": " + p.Problem
}

// Error says that settings are not valid. Nothing was done with them.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	first := e.Problems[0].String()
	if more := len(e.Problems) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more, which config check lists)", first, more)
	}
	return first
}
