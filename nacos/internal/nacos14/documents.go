package nacos14

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
	"github.com/leafsql/leafsql/nacos/internal/api"
)

// Get implements worker.Slots. It returns an error for every worker id except the id of this
// instance, and if another process has taken the worker id since instanceID returned
// it. The keeper then searches again with another instance id.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	if slot == worker.RegistrySlot {
		return r.read(ctx, slot)
	}
	r.mu.Lock()
	mine, ours := r.ownID, r.ownNonce
	r.mu.Unlock()
	if slot != mine {
		return worker.Doc{}, "", fmt.Errorf("it is not the instance id, %d", mine)
	}
	d, v, err := r.read(ctx, slot)
	if err == nil && d.Nonce != ours && inUse(d) {
		return worker.Doc{}, "", fmt.Errorf("%s acquired it at the same time", d.Owner)
	}
	return d, v, err
}

func (r *registry) read(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	return api.ReadSlot(r.id(slot), func(id string) (string, bool, error) { return r.query(ctx, r.HTTP.Servers()[0], id) })
}

// Put implements worker.Slots as well as possible without compare-and-set. It checks the
// instance id, compares the document and writes it. If the document gets a new owner, Put waits for
// a while. Then it reads the document from every server. If two processes write at once,
// both read the later text in the end, so one of them fails.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if slot != worker.RegistrySlot {
		if err := r.checkOwner(ctx, slot); err != nil {
			return "", false, &worker.NotWrittenError{Err: err}
		}
	}
	began := time.Now()
	was, ver, err := r.read(ctx, slot)
	switch {
	case err != nil:
		return "", false, &worker.NotWrittenError{Err: err}
	case ver != expected:
		return "", false, nil
	}
	if !d.Free {
		r.mu.Lock()
		r.ownNonce = d.Nonce
		r.mu.Unlock()
	}
	text := d.Encode()
	err = r.publish(ctx, r.id(slot), text)
	if d.Nonce != was.Nonce && !d.Free {
		wait := changeTime
		if end, ok := ctx.Deadline(); ok {
			wait = min(wait, time.Until(end)/3)
		}
		if err != nil || time.Since(began) > wait/2 {
			// Another process that wrote earlier may have confirmed its text already. After any
			// other error, the search would treat this text as its lease if the server has it.
			return "", false, &worker.NotWrittenError{Err: cmp.Or(err, errTooLate)}
		}
		if !api.Sleep(ctx, wait) {
			return "", false, context.Cause(ctx)
		}
	}
	if err != nil {
		return "", false, err
	}
	return r.confirm(ctx, slot, api.VersionOf(text), expected)
}

// changeTime is how long Put waits after it has written a document with a new owner.
// The comparison and the write may take at most half of it.
const changeTime = 1500 * time.Millisecond

var errTooLate = errors.New("the server took too long between the comparison and the write")

// confirm reads a document until every server returns the written text.
func (r *registry) confirm(ctx context.Context, slot int, ver, over worker.Version) (worker.Version, bool, error) {
	for _, base := range r.HTTP.Servers() {
		for {
			now, found, err := r.query(ctx, base, r.id(slot))
			switch seen := api.VersionOf(now); {
			case err != nil:
				return "", false, err
			case found && seen != ver && seen != over:
				return "", false, nil
			case !found || seen != ver:
				if !api.Sleep(ctx, 50*time.Millisecond) {
					return "", false, context.Cause(ctx)
				}
				continue
			}
			break
		}
	}
	return ver, true, nil
}

// checkOwner returns an error unless slot is the instance id of this process.
func (r *registry) checkOwner(ctx context.Context, slot int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.registration.IP == "" || slot != r.ownID {
		return errors.New("the instance id is not registered")
	}
	return r.checkRegistration(ctx)
}

func (r *registry) id(slot int) string { return api.DocumentID(r.Service, slot) }

// query reads a config document from one server.
func (r *registry) query(ctx context.Context, base, id string) (text string, found bool, err error) {
	body, err := r.HTTP.Call(ctx, http.MethodGet, base, "/v1/cs/configs", r.configForm(id))
	if api.HasCode(err, http.StatusNotFound) {
		return "", false, nil
	}
	return string(body), err == nil, err
}

// publish writes a config document without comparing.
func (r *registry) publish(ctx context.Context, id, text string) error {
	form := r.configForm(id)
	form.Set("content", text)
	form.Set("type", "json")
	body, err := r.HTTP.Call(ctx, http.MethodPost, r.HTTP.Servers()[0], "/v1/cs/configs", form)
	if err == nil && string(body) != "true" {
		err = &api.ServerError{Request: "publishing " + id, Code: http.StatusOK, Message: string(body)}
	}
	return err
}

func (r *registry) configForm(id string) url.Values {
	form := url.Values{"dataId": {id}, "group": {r.Group}}
	if r.Namespace != "" {
		form.Set("tenant", r.Namespace)
	}
	return form
}

// list returns the service's instances on one server, healthy or not.
func (r *registry) list(ctx context.Context, base string) ([]api.Instance, error) {
	form := r.serviceForm()
	form.Set("healthyOnly", "false")
	body, err := r.HTTP.Call(ctx, http.MethodGet, base, "/v1/ns/instance/list", form)
	if err != nil {
		return nil, err
	}
	var list struct {
		Hosts []api.Instance `json:"hosts"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the list of instances can't be read: %w", err)
	}
	return list.Hosts, nil
}

func (r *registry) register(ctx context.Context, in api.Instance) error {
	meta, err := json.Marshal(in.Metadata)
	if err != nil {
		return err
	}
	form := r.instanceForm(in)
	form.Set("weight", strconv.FormatFloat(in.Weight, 'f', -1, 64))
	form.Set("enabled", "true")
	form.Set("healthy", "true")
	form.Set("metadata", string(meta))
	return r.sendToAny(ctx, http.MethodPost, form)
}

func (r *registry) deregister(ctx context.Context, in api.Instance) error {
	return r.sendToAny(ctx, http.MethodDelete, r.instanceForm(in))
}

// sendToAny sends a request about an instance to one server after the other until one
// answers.
func (r *registry) sendToAny(ctx context.Context, method string, form url.Values) error {
	var failed []error
	for _, base := range r.HTTP.Servers() {
		_, err := r.HTTP.Call(ctx, method, base, "/v1/ns/instance", form)
		if _, answered := errors.AsType[*api.ServerError](err); err == nil || answered {
			return err
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (r *registry) instanceForm(in api.Instance) url.Values {
	form := r.serviceForm()
	form.Set("ip", in.IP)
	form.Set("port", strconv.Itoa(in.Port))
	form.Set("clusterName", in.ClusterName)
	form.Set("ephemeral", "false")
	return form
}

func (r *registry) serviceForm() url.Values {
	return url.Values{
		"namespaceId": {cmp.Or(r.Namespace, "public")},
		"serviceName": {r.Group + "@@" + r.Service},
		"groupName":   {r.Group},
	}
}
