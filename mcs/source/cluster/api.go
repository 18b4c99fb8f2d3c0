// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"

	"k8s.io/client-go/rest"
)

// api reads objects of an API server as the JSON that it sends. client-go brings the connection, its credentials and
// their renewal; the objects are not decoded into types, which would lose what the types do not know.
type api struct {
	client *http.Client
	base   *url.URL
}

func newAPI(config *rest.Config) (*api, error) {
	config = rest.CopyConfig(config)
	config.Timeout = 0 // a watch has none
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return &api{client, base}, nil
}

// statusError is an answer of the API server that is none of ours to retry at once.
type statusError struct {
	Code    int
	Message string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answers %d: %.300s", e.Code, e.Message)
}

// isGone tells that a resource version or continue token is too old to go on from.
func isGone(err error) bool { return hasCode(err, http.StatusGone) }

func isNotFound(err error) bool { return hasCode(err, http.StatusNotFound) }

func hasCode(err error, code int) bool {
	status, is := errors.AsType[*statusError](err)
	return is && status.Code == code
}

// get opens a response; the caller closes it.
func (a *api) get(ctx context.Context, at string, query url.Values) (io.ReadCloser, error) {
	u := *a.base
	u.Path, u.RawQuery = path.Join(u.Path, at), query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close() //nolint:errcheck // only read
	var status struct {
		Message string `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = http.StatusText(response.StatusCode)
	}
	return nil, &statusError{Code: response.StatusCode, Message: status.Message}
}

// maxObject is more than an API server takes (etcd's limit is 1.5 MiB).
const maxObject = 16 << 20

// object reads one object.
func (a *api) object(ctx context.Context, at string) ([]byte, error) {
	body, err := a.get(ctx, at, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(io.LimitReader(body, maxObject))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", at, err)
	}
	return raw, nil
}

// meta is the head of every object.
type meta struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string            `json:"name"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
		OwnerReferences []struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}

// page is one part of a list, without its items.
type page struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
}

// list reads one page and hands over its items one by one, so that no more than one is in memory.
func (a *api) list(ctx context.Context, at string, query url.Values, item func(json.RawMessage) error) (page, error) {
	var read page
	body, err := a.get(ctx, at, query)
	if err != nil {
		return read, err
	}
	defer body.Close() //nolint:errcheck // only read
	decoder := json.NewDecoder(body)
	if err := expect(decoder, json.Delim('{')); err != nil {
		return read, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return read, err
		}
		switch key {
		case "metadata":
			err = decoder.Decode(&read.Metadata)
		case "items":
			err = items(decoder, item)
		default:
			var ignored json.RawMessage
			err = decoder.Decode(&ignored)
		}
		if err != nil {
			return read, fmt.Errorf("read the list of %s: %w", at, err)
		}
	}
	return read, expect(decoder, json.Delim('}')) // a list that is cut short is no list
}

func items(decoder *json.Decoder, item func(json.RawMessage) error) error {
	switch opening, err := decoder.Token(); {
	case err != nil:
		return err
	case opening == nil: // null
		return nil
	case opening != json.Delim('['):
		return errors.New("items is no list")
	}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if err := item(raw); err != nil {
			return err
		}
	}
	return expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("the answer is not what a list looks like: %v where %v is to be", got, want)
	}
	return nil
}
