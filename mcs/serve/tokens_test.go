// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

const (
	oldToken = "old-0123456789abcdef"
	newToken = "new-0123456789abcdef"
)

func writeTokens(t *testing.T, path string, lines ...string) {
	t.Helper()
	next := path + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

// Field case 102: an old and a new token are good together until the old one's time has come.
func TestTokenOverlap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	rotated := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	end := rotated.Add(11 * time.Hour)
	writeTokens(t, path, "# rotated at midnight", oldToken+" until="+end.Format(time.RFC3339), "", newToken)
	f, err := OpenTokenFile(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		after time.Duration
		token string
		good  bool
	}{
		{0, oldToken, true},
		{11*time.Hour - time.Second, oldToken, true},
		{11 * time.Hour, oldToken, false},
		{0, newToken, true},
		{1000 * time.Hour, newToken, true},
		{0, newToken[1:], false},
		{0, newToken + " ", false},
		{0, "", false},
		{0, "# rotated at midnight", false},
	} {
		f.now = func() time.Time { return rotated.Add(c.after) }
		if good, err := f.Authenticate(context.Background(), c.token); good != c.good || err != nil {
			t.Errorf("%s after the rotation, %q: %v, %v", c.after, c.token, good, err)
		}
	}
}

func TestTokenFileRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "holds no token"},
		{"comments alone", "# SECRET", "holds no token"},
		{"a short token", newToken + "\nSECRET", "line 2"},
		{"another word after it", newToken + " SECRET", "only until="},
		{"a time that is none", newToken + " until=SECRET", "only until="},
		{"a line without end", strings.Repeat("SECRET", 20_000), "by lines"},
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		writeTokens(t, path, c.text)
		_, err := OpenTokenFile(path, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := OpenTokenFile("/nowhere/tokens", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file that is not there was opened")
	}
}

func TestTokenFileIsReadAgain(t *testing.T) {
	log := &logged{}
	path := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, path, oldToken)
	f, err := OpenTokenFile(path, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	becomes := func(token string, want bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if good, _ := f.Authenticate(ctx, token); good == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%q never became %v", token, want)
			}
		}
	}
	time.Sleep(50 * time.Millisecond)
	writeTokens(t, path, newToken)
	becomes(newToken, true)
	becomes(oldToken, false)
	writeTokens(t, path, "short")
	for log.lines("stay good") == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	becomes(newToken, true)
}

// reviewer is an API server that knows some tokens.
type reviewer struct {
	authclient.TokenReviewInterface
	asked  atomic.Int64
	slow   time.Duration
	answer func(token string) (*authv1.TokenReview, error)
}

func (r *reviewer) Create(ctx context.Context, review *authv1.TokenReview, _ metav1.CreateOptions) (*authv1.TokenReview, error) {
	r.asked.Add(1)
	select {
	case <-time.After(r.slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return r.answer(review.Spec.Token)
}

func reviewed(authenticated bool, user string, audiences ...string) *authv1.TokenReview {
	review := &authv1.TokenReview{}
	review.Status.Authenticated, review.Status.Audiences = authenticated, audiences
	review.Status.User.Username = user
	return review
}

func TestTokenReviewJudges(t *testing.T) {
	const node = "system:serviceaccount:mcsnap:node"
	answers := map[string]*authv1.TokenReview{
		"good":           reviewed(true, node, "mcs"),
		"other-audience": reviewed(true, node, "https://kubernetes.default.svc"),
		"no-audience":    reviewed(true, node),
		"other-user":     reviewed(true, "system:serviceaccount:default:default", "mcs"),
		"bad":            reviewed(false, ""),
	}
	api := &reviewer{answer: func(token string) (*authv1.TokenReview, error) {
		if a := answers[token]; a != nil {
			return a, nil
		}
		return nil, fmt.Errorf("Post %q: connection refused", token)
	}}
	a := NewTokenReview(api, []string{"mcs"}, []string{node})
	for token, want := range map[string]bool{"good": true, "other-audience": false, "no-audience": false, "other-user": false, "bad": false} {
		for range 5 {
			if good, err := a.Authenticate(context.Background(), token); good != want || err != nil {
				t.Errorf("%s: %v, %v", token, good, err)
			}
		}
	}
	if n := api.asked.Load(); n != int64(len(answers)) {
		t.Errorf("asked %d times about %d tokens", n, len(answers))
	}
	_, err := a.Authenticate(context.Background(), "SECRET")
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a reviewer that is away: %v", err)
	}
	if _, err := a.Authenticate(context.Background(), "SECRET"); err == nil || api.asked.Load() != int64(len(answers))+2 {
		t.Error("a question without an answer was remembered as one")
	}
	if anyone := NewTokenReview(api, nil, nil); anyone != nil {
		if good, _ := anyone.Authenticate(context.Background(), "no-audience"); !good {
			t.Error("without an audience asked for, any is good")
		}
	}
}

// Field case 60: a rack with one token is one question, and invented tokens do not reach the API server in numbers.
func TestTokenReviewIsBounded(t *testing.T) {
	api := &reviewer{slow: 50 * time.Millisecond, answer: func(token string) (*authv1.TokenReview, error) {
		return reviewed(token == "rack", "node", "mcs"), nil
	}}
	a := NewTokenReview(api, []string{"mcs"}, nil)
	a.rate.SetLimit(0) // however slow this machine is: no time passes that would allow more questions
	var all sync.WaitGroup
	for range 2000 {
		all.Go(func() {
			if good, err := a.Authenticate(context.Background(), "rack"); !good || err != nil {
				t.Errorf("%v, %v", good, err)
			}
		})
	}
	all.Wait()
	if n := api.asked.Load(); n != 1 {
		t.Errorf("one token was asked about %d times", n)
	}
	var refused atomic.Int64
	for i := range 500 {
		all.Go(func() {
			if _, err := a.Authenticate(context.Background(), fmt.Sprint("invented-", i)); errors.Is(err, errReviewRate) {
				refused.Add(1)
			}
		})
	}
	all.Wait()
	asked := api.asked.Load() - 1
	if asked+refused.Load() != 500 || asked != reviewBurst-1 {
		t.Errorf("500 invented tokens became %d questions and %d refusals", asked, refused.Load())
	}
}

// An answer that takes longer than Ignition waits is no answer.
func TestTokenReviewEndsInTime(t *testing.T) {
	api := &reviewer{slow: time.Hour}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := NewTokenReview(api, nil, nil).Authenticate(ctx, "token"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
