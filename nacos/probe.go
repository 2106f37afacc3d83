package nacos

import (
	"context"

	"github.com/leafsql/leafsql/idgen/worker"
)

// A server's ok is no proof: 2.0.x says it to every compare-and-set and does
// nothing. So two refusals have to be seen: that of an md5 nobody wrote, once
// of each server that is gone to, before anything else is asked of it, and that
// of the md5 which the first write to a slot has replaced, before that write
// counts. No read is needed for it, which may show a write a second late.

// probe makes sure that a server's compare-and-set compares. It works on a
// document of its own that all processes share and that has always the same
// text, so that nothing is lost where the md5 is ignored. A missing document
// takes any md5, the first time.
func probe(ctx context.Context, server documents, name, service string) error {
	for range 2 {
		err := server.publish(ctx, service+".probe", "probe", noSum())
		if err != nil {
			return unlessMissed(err)
		}
	}
	return &UnusableError{Servers: name, Reason: "it says ok to a compare-and-set with the wrong md5, as 2.0.x does"}
}

// prove makes sure that writes told ok are carried out: once text is there,
// the md5 that it replaced must be refused. What is sent again is text, which
// changes nothing where the md5 is ignored, and can't come late: no document
// has the md5 a second time.
func (r *registry) prove(ctx context.Context, id, text string, replaced worker.Version) error {
	r.mu.Lock()
	proven := r.proven
	r.mu.Unlock()
	if proven || replaced == "" { // a write upon nothing compares with nothing
		return nil
	}
	err := r.configs.publish(ctx, id, text, string(replaced))
	if err == nil {
		return &UnusableError{Servers: r.servers, Reason: "it says ok to a compare-and-set and does not carry it out"}
	}
	err = unlessMissed(err)
	r.mu.Lock()
	r.proven = r.proven || err == nil
	r.mu.Unlock()
	return err
}

// unlessMissed gives nil if the comparison failed, be it at a repetition.
func unlessMissed(err error) error {
	if isCasMiss(err.Error()) {
		return nil
	}
	return err
}
