// Package registrytags asks the image-resolver for the tags of a repository, and
// remembers for some seconds what it said, so that an evaluation on a warm pod needs no
// word from it.
package registrytags

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

const (
	// patience is how long somebody who has an answer waits for a newer one.
	patience = 5 * time.Second
	// longest bounds a request that goes on when nobody waits for it any more.
	longest = 30 * time.Second
)

// Lister is the part of the image-resolver's client that is needed.
type Lister interface {
	ListTags(ctx context.Context, req *imageresolverv1.ListTagsRequest) (*imageresolverv1.ListTagsResponse, error)
}

// Source is a naming.TagSource that knows what registries know. Use [New].
type Source struct {
	lister Lister
	memory memory
	asking singleflight.Group
}

// New returns a source with nothing in its memory.
func New(lister Lister) *Source {
	return &Source{lister: lister, memory: memory{answers: make(map[string]*answer)}}
}

// Tags implements naming.TagSource: a repository that its registry does not know is an
// error. The answer is shared: it must not be changed.
func (s *Source) Tags(ctx context.Context, repository string) (tags []string, known bool, err error) {
	tags, err = s.tags(ctx, repository)
	return tags, err == nil, err
}

// tags returns the tags of a repository.
//
// Where an answer is known but no longer fresh, one caller asks for a newer one while
// the others take the known one. Where none is known, all wait for one request.
func (s *Source) tags(ctx context.Context, repository string) ([]string, error) {
	tags, state := s.memory.recall(repository)
	switch state {
	case fresh:
		return tags, nil
	case stale:
		return s.renew(ctx, repository, tags)
	case unknown:
	}
	return s.ask(ctx, repository)
}

// renew returns a newer answer than the known one, or that if the image-resolver does
// not answer. A request that takes long goes on, for those who come later; there is one
// at most for each repository in the memory.
func (s *Source) renew(ctx context.Context, repository string, known []string) ([]string, error) {
	asked := s.asking.DoChan(repository, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
		defer cancel()
		return s.list(ctx, repository)
	})
	hurry := time.NewTimer(patience)
	defer hurry.Stop()
	select {
	case said := <-asked:
		if said.Err != nil && !answered(said.Err) {
			return known, nil
		}
		return result(said)
	case <-hurry.C:
		return known, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errLeft is how a request ends whose caller has left.
var errLeft = fault.New(fault.Canceled, "whoever asked for tags has left")

// ask asks the image-resolver, or waits for the answer to somebody who is asking for the
// same. If that one leaves, another asks.
func (s *Source) ask(ctx context.Context, repository string) ([]string, error) {
	for ctx.Err() == nil {
		asked := s.asking.DoChan(repository, func() (any, error) {
			tags, err := s.list(ctx, repository)
			if err != nil && ctx.Err() != nil {
				return nil, errLeft
			}
			return tags, err
		})
		select {
		case said := <-asked:
			if !errors.Is(said.Err, errLeft) {
				return result(said)
			}
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// list asks the image-resolver and takes its answer down.
func (s *Source) list(ctx context.Context, repository string) ([]string, error) {
	resp, err := s.lister.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
	if err == nil {
		s.memory.remember(repository, resp.GetTags())
		return resp.GetTags(), nil
	}
	err = rpcfault.FromConnect(err)
	if answered(err) {
		s.memory.doubt(repository)
	}
	return nil, err
}

// answered says whether an error is what the image-resolver had to say, and not that
// nothing was heard of it.
func answered(err error) bool {
	switch fault.Of(err) {
	case fault.Unavailable, fault.DeadlineExceeded, fault.Canceled:
		return false
	default:
		return true
	}
}

// result returns what a request came to.
func result(said singleflight.Result) ([]string, error) {
	tags, _ := said.Val.([]string)
	return tags, said.Err
}
