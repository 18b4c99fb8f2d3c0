// SPDX-License-Identifier: Apache-2.0

package handoff

// OnState has a test called before every state.
func OnState(call func()) { onState = call }
