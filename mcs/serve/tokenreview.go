// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// TokenReview is an Authenticator that asks an API server (kubectl create token SA --audience mcs makes such tokens).
//
// Judgements are kept, good ones longer than bad ones, and questions are bounded in rate: a rack of machines with one
// token is one question, and a flood of invented tokens does not reach the API server.
type TokenReview struct {
	client    authclient.TokenReviewInterface
	audiences []string
	users     []string
	salt      [32]byte
	judged    *cache.LRUExpireCache
	asking    singleflight.Group
	rate      *rate.Limiter
}

const (
	// A revoked token is good for a minute at most; an unknown one is asked about again soon, because the API server
	// may learn of it.
	keepGood = time.Minute
	keepBad  = 10 * time.Second
	// mostJudged bounds the memory; it is more than the tokens of a large cluster.
	mostJudged = 4096
	// Questions per second, and how many at once after a rest.
	reviewsPerSecond = 10
	reviewBurst      = 50
)

// NewTokenReview returns an Authenticator for tokens of one of the audiences. With users given, only their tokens are
// good ("system:serviceaccount:NAMESPACE:NAME").
func NewTokenReview(client authclient.TokenReviewInterface, audiences, users []string) *TokenReview {
	t := &TokenReview{
		client: client, audiences: audiences, users: users,
		judged: cache.NewLRUExpireCache(mostJudged),
		rate:   rate.NewLimiter(reviewsPerSecond, reviewBurst),
	}
	rand.Read(t.salt[:]) //nolint:errcheck // never fails (crypto/rand)
	return t
}

var (
	errReviewRate  = errors.New("too many tokens to review at once")
	errReviewReply = errors.New("the API server did not review the token")
)

// Authenticate asks the API server unless the token was judged a short time ago.
func (t *TokenReview) Authenticate(ctx context.Context, token string) (bool, error) {
	// Salted, so that what lies in memory is of no use elsewhere.
	key := string(t.key(token))
	if good, known := t.judged.Get(key); known {
		return good.(bool), nil
	}
	answer := t.asking.DoChan(key, func() (any, error) {
		// Whoever was between the look above and here while the question before this one was answered.
		if good, known := t.judged.Get(key); known {
			return good, nil
		}
		if !t.rate.Allow() {
			return false, errReviewRate
		}
		// The question outlives the client that asked first: others wait for it too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTime)
		defer cancel()
		good, err := t.review(ctx, token)
		if err != nil {
			return false, err
		}
		keep := keepBad
		if good {
			keep = keepGood
		}
		t.judged.Add(key, good, keep)
		return good, nil
	})
	select {
	case result := <-answer:
		good, _ := result.Val.(bool)
		return good, result.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (t *TokenReview) key(token string) []byte {
	sum := sha256.Sum256(append(t.salt[:len(t.salt):len(t.salt)], token...))
	return sum[:]
}

func (t *TokenReview) review(ctx context.Context, token string) (bool, error) {
	reply, err := t.client.Create(ctx, &authv1.TokenReview{
		Spec: authv1.TokenReviewSpec{Token: token, Audiences: t.audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		// The API server's words may quote the request, and the request is the token.
		return false, fmt.Errorf("%w (%s)", errReviewReply, apierrors.ReasonForError(err))
	}
	if !reply.Status.Authenticated {
		return false, nil
	}
	// A server that knows nothing of audiences says none back: its judgement is about another audience.
	if len(t.audiences) > 0 && !slices.ContainsFunc(reply.Status.Audiences, func(a string) bool { return slices.Contains(t.audiences, a) }) {
		return false, nil
	}
	return len(t.users) == 0 || slices.Contains(t.users, reply.Status.User.Username), nil
}
