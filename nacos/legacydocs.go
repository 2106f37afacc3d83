package nacos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Get implements worker.Slots. A slot that somebody took since workers named it
// is an error: that was a tie, and workers will name another one. As an answer
// it would say that all worker ids are taken.
func (l *legacy) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	d, v, err := l.read(ctx, slot)
	if err != nil || !inUse(d) {
		return d, v, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked {
		return worker.Doc{}, "", fmt.Errorf("worker id %d was taken by %s at the same time", slot, d.Owner)
	}
	return d, v, nil
}

func (l *legacy) read(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	id := l.doc(slot)
	text, found, err := l.web.query(ctx, l.web.bases[0], id)
	if err != nil || !found {
		return worker.Doc{}, "", err
	}
	d, err := worker.ParseDoc(text)
	if err != nil {
		return worker.Doc{}, "", fmt.Errorf("config %s: %w", id, err)
	}
	return d, worker.Version(sum(text)), nil
}

// Put implements worker.Slots as well as it can without compare-and-set: the
// instance id is checked, the document is compared, written, left alone for a
// while if it changes hands, and read again from every server. Two writers
// that do this at once both see the later text, so one of them gives in. A
// missing document is compared as well, so that a wipe needs no anchor.
func (l *legacy) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, worker.Result, error) {
	if err := l.owns(ctx, slot); err != nil {
		return "", worker.Refused, err
	}
	began := time.Now()
	was, ver, err := l.read(ctx, slot)
	if err != nil || ver != expected {
		return "", worker.Refused, err
	}
	if !d.Free {
		l.mu.Lock()
		l.asked = false
		l.mu.Unlock()
	}
	text := d.Encode()
	err = l.web.publish(ctx, l.doc(slot), text)
	if d.Nonce != was.Nonce && !d.Free {
		wait := changeTime
		if end, ok := ctx.Deadline(); ok {
			wait = min(wait, time.Until(end)/3)
		}
		if err != nil || time.Since(began) > wait/2 {
			// Another that wrote before may have looked already. To say Unknown
			// would be to have this text, if it stands there, taken for a lease.
			return "", worker.Refused, cmp.Or(err, errTooLate)
		}
		if !sleep(ctx, wait) {
			return "", worker.Unknown, context.Cause(ctx)
		}
	}
	if err != nil {
		return "", worker.Unknown, err
	}
	return l.confirm(ctx, slot, text, expected)
}

// changeTime is how long a document that changes hands is left alone. Nobody
// may take more than half of it from comparing to writing.
const changeTime = 1500 * time.Millisecond

var errTooLate = errors.New("the server took too long to write what was compared before")

// confirm reads a document until every server has the text.
func (l *legacy) confirm(ctx context.Context, slot int, text string, over worker.Version) (worker.Version, worker.Result, error) {
	ver := worker.Version(sum(text))
	for _, base := range l.web.bases {
		for {
			now, found, err := l.web.query(ctx, base, l.doc(slot))
			switch seen := worker.Version(sum(now)); {
			case err != nil:
				return "", worker.Unknown, err
			case found && seen != ver && seen != over:
				return "", worker.Refused, nil
			case !found || seen != ver:
				if !sleep(ctx, 50*time.Millisecond) {
					return "", worker.Unknown, context.Cause(ctx)
				}
				continue
			}
			break
		}
	}
	return ver, worker.OK, nil
}

// owns makes sure that the slot is the one of this process's instance id.
func (l *legacy) owns(ctx context.Context, slot int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in.IP == "" || slot != l.mine {
		return errors.New("the instance id is not registered")
	}
	return l.check(ctx)
}

func (l *legacy) doc(slot int) string { return l.service + ".worker." + strconv.Itoa(slot) }

// version asks the servers for theirs; found is whether one answered, and not
// something in front of it.
func (w *web) version(ctx context.Context) (version string, found bool) {
	for _, base := range w.bases {
		code, body, err := w.send(ctx, http.MethodGet, base+"/v1/console/server/state", nil)
		var state struct {
			Version string `json:"version"`
		}
		if err == nil && code == http.StatusOK && json.Unmarshal(body, &state) == nil && state.Version != "" {
			return state.Version, true
		}
	}
	return "", false
}

// query reads a config document from one server.
func (w *web) query(ctx context.Context, base, id string) (text string, found bool, err error) {
	body, err := w.call(ctx, http.MethodGet, base, "/v1/cs/configs", w.configForm(id))
	if isCode(err, http.StatusNotFound) {
		return "", false, nil
	}
	return string(body), err == nil, err
}

// publish writes a config document, whatever is there.
func (w *web) publish(ctx context.Context, id, text string) error {
	form := w.configForm(id)
	form.Set("content", text)
	form.Set("type", "json")
	body, err := w.call(ctx, http.MethodPost, w.bases[0], "/v1/cs/configs", form)
	if err == nil && string(body) != "true" {
		err = &ServerError{Request: "publishing " + id, Code: http.StatusOK, Message: excerpt(body)}
	}
	return err
}

func (w *web) configForm(id string) url.Values {
	form := url.Values{"dataId": {id}, "group": {w.group}}
	if w.namespace != "" {
		form.Set("tenant", w.namespace)
	}
	return form
}

// list reads the service's instances from one server, healthy or not.
func (w *web) list(ctx context.Context, base string) ([]instance, error) {
	form := w.serviceForm()
	form.Set("healthyOnly", "false")
	body, err := w.call(ctx, http.MethodGet, base, "/v1/ns/instance/list", form)
	if err != nil {
		return nil, err
	}
	var r struct {
		Hosts []instance `json:"hosts"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("the list of instances can't be read: %w", err)
	}
	return r.Hosts, nil
}
