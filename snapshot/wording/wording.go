// SPDX-License-Identifier: Apache-2.0

// Package wording says for people what Go's JSON readers say for programmers: of a value of the wrong type, the field,
// what stands there and what is wanted, without the names of Go's types. It judges nothing.
package wording

import (
	"fmt"
	"regexp"
	"strings"
)

// wrongType is how encoding/json, and the copy of it that Ignition has, report a value of the wrong type.
var wrongType = regexp.MustCompile(`(?:error unmarshaling JSON: )?(?:while decoding JSON: )?(?:json: )?cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field (\S+)|value) of type (struct \{.*\}|\S*interface \{\}|[^\s;:,]+)`)

// JSON returns a message with every such report in it put into words. What else is in it stays.
func JSON(message string) string {
	return wrongType.ReplaceAllStringFunc(message, func(report string) string {
		part := wrongType.FindStringSubmatch(report)
		said := fmt.Sprintf("is %s, want %s", got(part[1]), want(part[3]))
		if field := fieldOf(part[2]); field != "" {
			said = field + " " + said
		}
		return said
	})
}

// Error is JSON for an error's message.
func Error(err error) string { return JSON(err.Error()) }

// embedded is what Ignition's generator calls the types that it puts into others.
var embedded = regexp.MustCompile(`^\w+Embedded\d+$`)

// fieldOf takes the Go type off the front of a field's path, and embedded types out of it.
func fieldOf(path string) string {
	_, path, _ = strings.Cut(path, ".")
	var parts []string
	for part := range strings.SplitSeq(path, ".") {
		if part != "" && !embedded.MatchString(part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

func got(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "text"
	case "bool":
		return "true or false"
	}
	return "a " + value
}

func want(goType string) string {
	goType = strings.TrimLeft(goType, "*")
	switch {
	case goType == "[]uint8" || goType == "[]byte":
		return "text in base64"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "int") || strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "text"
	case strings.HasPrefix(goType, "struct") || strings.HasPrefix(goType, "map["):
		return "an object"
	}
	// A type with a name: Ignition's are objects but for those that are text under another name.
	if name := goType[strings.LastIndex(goType, ".")+1:]; textTypes[name] {
		return "text"
	}
	return "an object"
}

// textTypes are Ignition's names for text.
var textTypes = map[string]bool{
	"Device": true, "Group": true, "SSHAuthorizedKey": true, "KernelArgument": true, "MountOption": true,
	"FilesystemOption": true, "RaidOption": true, "LuksOption": true, "OpenOption": true, "NoProxyItem": true, "PasswordHash": true,
}
