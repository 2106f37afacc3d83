package nacos

import (
	"context"
	"errors"
)

// vet makes sure that a server's compare-and-set compares, and that it shows
// the anchor that the servers before it showed. Another one, or none, may be
// that of another cluster. There a renewal would find the document missing and
// be told ok, while the first cluster gives the worker id away after the old
// bound. So nothing is written there, and what is held ends at its bound. A
// server that has shown the anchor was wiped since: it is the one registry
// still, where a renewal and a newcomer's document of unknown history meet.
func (c *cluster) vet(ctx context.Context, target string, server pinned) error {
	if err := probe(ctx, server, target, c.service); err != nil || c.anchor == "" {
		return err
	}
	text, found, err := server.query(ctx, anchorID(c.service))
	switch {
	case err != nil:
		return err
	case found && text == c.anchor:
		c.shown[target] = true
	case !c.shown[target]:
		return errAnotherRegistry
	}
	return nil
}

var errAnotherRegistry = errors.New("its registry of worker ids is not the one used before: name servers of one cluster only, or else the registry was wiped")

// settle has f give the registry's anchor, whatever it was before, and holds
// every link from then on to it. A lease must not be held meanwhile: its
// renewals are to reach the registry that it was taken from.
func (c *cluster) settle(ctx context.Context, f func(context.Context, documents) (string, error)) (string, error) {
	if err := c.expect(ctx, "", nil); err != nil {
		return "", err
	}
	var failed error
	for range len(c.targets) + 1 {
		l, err := c.connection(ctx)
		if err != nil {
			return "", err
		}
		anchor, err := f(ctx, pinned{c, l})
		if err == nil {
			return anchor, c.expect(ctx, anchor, l)
		}
		failed = err
		if c.judge(ctx, l, err); isServerError(err) && !isCode(err, codeUnregistered) || ctx.Err() != nil {
			break
		}
	}
	return "", failed
}

// expect says which anchor new links have to show, and that the one in use,
// which must still be l, has shown it.
func (c *cluster) expect(ctx context.Context, anchor string, l *link) error {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l != nil && c.link != l {
		return errors.New("the server was left while it was asked for the registry's anchor")
	}
	c.anchor, c.shown = anchor, make(map[string]bool)
	if l != nil {
		c.shown[l.target] = true
	}
	return nil
}

// pinned is the config service over one link, whatever becomes of it.
type pinned struct {
	c *cluster
	l *link
}

func (p pinned) call(ctx context.Context, kind string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for again := false; ; again = true {
		token, err := p.c.web.token(ctx)
		if err != nil {
			return unsentError{err}
		}
		err = p.l.call(ctx, kind, headers(token), body, into)
		if !isCode(err, codeForbidden) {
			return err
		}
		p.c.web.forget(token)
		if again {
			return unsentError{err}
		}
	}
}

func (p pinned) query(ctx context.Context, id string) (string, bool, error) {
	return p.c.read(ctx, p.call, id)
}

func (p pinned) publish(ctx context.Context, id, text, md5 string) error {
	return p.c.write(ctx, p.call, id, text, md5)
}
