package nacos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// ready makes sure once that the server's compare-and-set is one. As long as
// it can't be reached, each call tries again.
func (r *registry) ready(ctx context.Context) error {
	r.probing.Lock()
	defer r.probing.Unlock()
	if r.proven {
		return nil
	}
	err := r.probe(ctx)
	r.proven = err == nil
	return err
}

// probe works on a document of its own that all processes share. A wrong md5
// must be refused and a right one must have an effect that can be read; being
// told so is no proof. 2.0.x says ok to everything and does nothing.
func (r *registry) probe(ctx context.Context) error {
	id := r.service + ".probe"
	text, err := r.ensure(ctx, id)
	if err != nil {
		return err
	}
	// The text written is the one that is there, so that nothing is lost where
	// the md5 is ignored, and nothing seems written where the content of
	// refused writes is served.
	err = r.configs.publish(ctx, id, text, noSum())
	if err == nil {
		return r.unusable("it says ok to a compare-and-set with the wrong md5, as 2.0.x does")
	}
	if _, err := outcome(err); err != nil {
		return err
	}
	for {
		said := r.configs.publish(ctx, id, rand.Text(), sum(text))
		if _, err := outcome(said); err != nil {
			return err
		}
		// Somebody else's change is as good as ours: of many that probe at
		// once, one is told ok.
		was, changed, long := text, false, visible
		if said != nil {
			long /= 10
		}
		err := r.await(ctx, long, id, func(now string, found bool) bool {
			text, changed = now, found && now != was
			return changed
		})
		switch {
		case err != nil:
			return err
		case changed:
			return nil
		case said == nil:
			return r.unusable("it says ok to a compare-and-set and does not carry it out")
		case ctx.Err() != nil:
			return fmt.Errorf("refused with the right md5: %w", errors.Join(said, context.Cause(ctx)))
		}
	}
}

func (r *registry) unusable(reason string) error {
	return &UnusableError{Servers: r.servers, Reason: reason}
}
