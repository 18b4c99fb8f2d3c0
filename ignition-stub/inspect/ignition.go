// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// readIgnition takes a config of any spec version apart. Members it does not know are entries of their own.
func (d *Document) readIgnition(config map[string]any) {
	for _, section := range sorted(config) {
		members, ok := config[section].(map[string]any)
		if !ok {
			d.addWhole(section, config[section])
			continue
		}
		for _, member := range sorted(members) {
			at := section + "." + member
			list, isList := members[member].([]any)
			kind := map[string]string{"storage.files": "file", "storage.directories": "directory", "storage.links": "link",
				"systemd.units": "unit", "passwd.users": "user", "passwd.groups": "group"}[at]
			switch {
			case at == "ignition.version":
				d.Version, _ = members[member].(string)
			case at == "ignition.config", at == "ignition.security":
				d.addReferences(at, members[member])
			case kind != "" && isList:
				for _, element := range list {
					if element, ok := element.(map[string]any); ok {
						d.addElement(kind, element)
					}
				}
			default:
				d.addWhole(at, members[member])
			}
		}
	}
}

// addElement adds a file, a unit, a user and so on.
func (d *Document) addElement(kind string, element map[string]any) {
	entry := &Entry{Kind: kind}
	for _, key := range []string{"path", "name"} {
		if name, ok := element[key].(string); ok {
			entry.Name = name
			delete(element, key)
		}
	}
	d.Entries = append(d.Entries, entry)
	for _, key := range sorted(element) {
		value := element[key]
		switch {
		case key == "contents" && kind == "file":
			entry.addSource(key, value)
		case key == "contents", key == "passwordHash":
			text, _ := value.(string)
			entry.add(key, text, hidden(len(text)))
		case key == "append" && kind == "file":
			pieces, ok := value.([]any)
			for i, piece := range pieces {
				entry.addSource("append."+strconv.Itoa(i), piece)
			}
			if !ok {
				entry.add(key, compact(value), compact(value))
			}
		case key == "mode":
			shown := compact(value)
			if mode, err := strconv.ParseInt(shown, 10, 32); err == nil {
				shown = fmt.Sprintf("%04o", mode)
			}
			entry.add(key, shown, shown)
		case key == "dropins":
			dropins, _ := value.([]any)
			for _, dropin := range dropins {
				if dropin, ok := dropin.(map[string]any); ok {
					name, _ := dropin["name"].(string)
					text, _ := dropin["contents"].(string)
					entry.add("drop-in "+name, text, hidden(len(text)))
				}
			}
		case key == "sshAuthorizedKeys":
			keys, _ := value.([]any)
			entry.add(key, compact(value), fmt.Sprintf("%d", len(keys)))
		default:
			entry.add(key, compact(value), compact(value))
		}
	}
}

// addSource adds contents by what they decode to; how they are encoded is a matter of looks.
func (e *Entry) addSource(name string, value any) {
	resource, _ := value.(map[string]any)
	source, _ := resource["source"].(string)
	compression, _ := resource["compression"].(string)
	data, err := contents.Decode(source, compression, contents.MaxInflated)
	switch {
	case err == nil:
		sum := sha256.Sum256(data)
		e.add(name, string(data), fmt.Sprintf("%d bytes, sha256 %x", len(data), sum[:6]))
		e.Fields = append(e.Fields, &Field{Name: name + " as written", Shown: fmt.Sprintf("%d bytes", len(source)), value: source + compression, cosmetic: true})
	case strings.HasPrefix(source, "data:"):
		e.add(name, source+compression, "cannot be decoded: "+err.Error())
	default:
		e.add(name, source+compression, "from "+bare(source))
	}
	if verification, ok := resource["verification"].(map[string]any); ok && len(verification) > 0 {
		hash, _ := verification["hash"].(string)
		e.add(name+" hash", hash, shorten(hash))
	}
	if headers, ok := resource["httpHeaders"]; ok {
		e.add(name+" headers", compact(headers), hidden(len(compact(headers))))
	}
}

// addReferences adds what a stub names: other configs, and CAs.
func (d *Document) addReferences(at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["source"].(string); ok {
			entry := &Entry{Kind: at}
			entry.addSource("source", value)
			d.Entries = append(d.Entries, entry)
			return
		}
		for _, key := range sorted(value) {
			d.addReferences(at+"."+key, value[key])
		}
	case []any:
		for i, element := range value {
			d.addReferences(at+"."+strconv.Itoa(i), element)
		}
	default:
		d.addWhole(at, value)
	}
}

// addWhole adds something of which there is one.
func (d *Document) addWhole(name string, value any) {
	text := compact(value)
	shown := text
	if len(text) > 200 || strings.Contains(text, `"source"`) || strings.Contains(text, "key") {
		shown = hidden(len(text))
	}
	if empty := strings.Trim(text, "{}[]"); empty == "" || empty == "null" {
		return
	}
	d.Entries = append(d.Entries, &Entry{Kind: name, Fields: []*Field{{Name: "", Shown: shown, value: text}}})
}

func (e *Entry) add(name, value, shown string) {
	e.Fields = append(e.Fields, &Field{Name: name, Shown: shown, value: value})
}

func compact(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON before
	}
	return string(text)
}

func hidden(size int) string { return fmt.Sprintf("%d bytes", size) }

func shorten(hash string) string { return hash[:min(len(hash), 20)] }

func bare(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "what is no URL"
	}
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}

func sorted(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }
