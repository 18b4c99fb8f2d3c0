// SPDX-License-Identifier: Apache-2.0

// Package rpcvmx stands in for a VMware library that is no longer to be had; the lab never runs on VMware.
package rpcvmx

// Config answers every question with its default.
type Config struct{}

// NewConfig is what Ignition 0.35 calls on VMware.
func NewConfig() *Config { return &Config{} }

// String gives the default.
func (*Config) String(_, value string) (string, error) { return value, nil }
